import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  /** Whether something was done: what opened the dialog may soon be gone. */
  readonly isDone?: boolean;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus in it, closes it with Escape, and returns the focus to where it was, or to the page. */
export function Dialog({ title, onClose, isDone = false, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const isOpen = useRef(true);
  const mayReturn = useRef(true);
  mayReturn.current = !isDone;
  useEffect(() => {
    const element = dialog.current;
    const opener = document.activeElement;
    element?.showModal();
    return () => {
      isOpen.current = false;
      // The rest of the page takes no focus while the dialog is modal.
      element?.close();
      // The button of an action goes away if the action is no longer possible, and the focus would be lost with it.
      if (mayReturn.current && opener instanceof HTMLElement && opener.isConnected) opener.focus();
      else document.querySelector('main')?.focus();
    };
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby={titleId} onClose={() => isOpen.current && onClose()}>
      <header>
        <h2 id={titleId}>{title}</h2>
        <button type="button" class="close" aria-label="Close" onClick={() => dialog.current?.close()}>
          <span aria-hidden="true">×</span>
        </button>
      </header>
      {children}
    </dialog>
  );
}
