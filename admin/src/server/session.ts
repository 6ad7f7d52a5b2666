import { createStore } from './store.ts';

export interface Session {
  readonly token: string | undefined;
  /** Why the last token is no longer used. */
  readonly problem: string | undefined;
}

// Only for this tab, and gone when it is closed.
const storageKey = 'refold-admin-token';

export const session = createStore<Session>({ token: tokenFromAddress() ?? stored(), problem: undefined });

export function signIn(token: string): void {
  sessionStorage.setItem(storageKey, token);
  session.set({ token, problem: undefined });
}

export function signOut(problem?: string): void {
  sessionStorage.removeItem(storageKey);
  session.set({ token: undefined, problem });
}

/** `#token=…`, as `refold dev` prints it. It is removed from the address, so that it is in no bookmark and no screenshot. */
function tokenFromAddress(): string | undefined {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return undefined;
  history.replaceState(null, '', location.pathname);
  sessionStorage.setItem(storageKey, token);
  return token;
}

function stored(): string | undefined {
  return sessionStorage.getItem(storageKey) ?? undefined;
}
