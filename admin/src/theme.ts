import { createStore } from './server/store.ts';

export type Theme = 'auto' | 'light' | 'dark';

const storageKey = 'refold-admin-theme';

/** `auto`: as the system is set. */
export const theme = createStore<Theme>(storedTheme());

export function chooseTheme(chosen: Theme): void {
  localStorage.setItem(storageKey, chosen);
  theme.set(chosen);
  applyTheme();
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = theme.get();
}

function storedTheme(): Theme {
  const stored = localStorage.getItem(storageKey);
  return stored === 'light' || stored === 'dark' ? stored : 'auto';
}
