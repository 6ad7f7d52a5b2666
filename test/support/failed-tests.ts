/** Vitest runs this file before every test file, so `anyTestFailed()` reports on that file's tests. */
import { beforeEach } from 'vitest';

// Kept on globalThis for the whole worker: this module is evaluated again for each file, but its importers are not.
const state = globalThis as typeof globalThis & { refoldTestFailed?: boolean }; // nobody else uses this name
state.refoldTestFailed = false;

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => {
    state.refoldTestFailed = true;
  });
});

export function anyTestFailed(): boolean {
  return state.refoldTestFailed === true;
}
