/** Vitest runs this file before every test file, so that `anyTestFailed()` can tell about that file's tests. */
import { beforeEach } from 'vitest';

// Of the whole worker: this module is evaluated anew for each file, those that import it are not.
const state = globalThis as typeof globalThis & { refoldTestFailed?: boolean }; // nobody else has this name
state.refoldTestFailed = false;

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => {
    state.refoldTestFailed = true;
  });
});

export function anyTestFailed(): boolean {
  return state.refoldTestFailed === true;
}
