import assert from 'node:assert/strict';

/** Fails with the message and the difference: `assert` omits the difference if a message is passed. */
export function expectSame(found: unknown, expected: unknown, message: string): void {
  try {
    assert.deepEqual(found, expected);
  } catch (error) {
    if (error instanceof assert.AssertionError) error.message = `${message}\n${error.message}`;
    throw error;
  }
}
