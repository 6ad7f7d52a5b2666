/** Vitest runs this file before every test file, so that `anyTestFailed()` can tell about that file's tests. */
import { beforeEach } from 'vitest';

let failed = false;

beforeEach(({ onTestFailed }) => {
  onTestFailed(() => {
    failed = true;
  });
});

export function anyTestFailed(): boolean {
  return failed;
}
