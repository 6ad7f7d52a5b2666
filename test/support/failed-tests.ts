/** Vitest runs this file before every test file, so `anyTestFailed()` reports on that file's tests. */
import { beforeEach, type TestContext } from 'vitest';

// Kept on globalThis for the whole worker: this module is evaluated again for each file, but its importers are not.
const state = globalThis as typeof globalThis & { refoldTests?: TestContext['task'][] }; // nobody else uses this name
const tests: TestContext['task'][] = [];
state.refoldTests = tests;

beforeEach(({ task }) => void tests.push(task));

/** Of the file's tests so far, including the one whose `afterEach` asks. */
export function anyTestFailed(): boolean {
  return state.refoldTests?.some(({ result }) => result?.state === 'fail') === true;
}
