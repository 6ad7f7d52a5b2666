import { useEffect, useRef } from 'preact/hooks';
import type { RowHistoryQuery } from '../gql/graphql.ts';
import { number } from '../parts/format.tsx';
import { Icon } from '../parts/marks.tsx';

export type Step = RowHistoryQuery['rowHistory']['items'][number];

interface StepListProps {
  readonly steps: readonly Step[];
  readonly index: number;
  readonly onIndex: (index: number) => void;
}

/** The events of a row. One stop of the Tab key; the arrow keys, Home and End move in it. */
export function StepList({ steps, index, onIndex }: StepListProps) {
  const list = useRef<HTMLDivElement>(null);
  const move = (next: number) => onIndex(Math.max(0, Math.min(steps.length - 1, next)));
  // when another one is chosen
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [index]);
  const moves: Readonly<Record<string, () => void>> = {
    ArrowDown: () => move(index + 1),
    ArrowRight: () => move(index + 1),
    ArrowUp: () => move(index - 1),
    ArrowLeft: () => move(index - 1),
    Home: () => move(0),
    End: () => move(steps.length - 1),
  };
  return (
    <div
      ref={list}
      class="step-list"
      role="listbox"
      aria-label="Events of the row"
      aria-activedescendant={`step-${index}`}
      tabIndex={0}
      onKeyDown={(event) => {
        const run = moves[event.key];
        if (!run) return;
        event.preventDefault();
        run();
      }}
    >
      {steps.map(({ event, states }, each) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the list has the focus and the keys
        <div
          key={event.position}
          id={`step-${each}`}
          role="option"
          aria-selected={each === index}
          onClick={() => onIndex(each)}
        >
          <span>{event.type}</span>
          <small>
            {number(event.position)}
            {states.some(({ outcome }) => outcome === 'FAILED' || outcome === 'LEFT_OUT') && (
              <span class="warn-text">
                {' '}
                <Icon shape="triangle" /> not folded everywhere
              </span>
            )}
          </small>
        </div>
      ))}
    </div>
  );
}
