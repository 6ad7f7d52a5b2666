import { CommandRejected } from '../../src/index.ts';

/** Whether a step was accepted: false if its command was rejected. Other errors are rethrown, and the handler is retried. */
export async function accepted(step: Promise<unknown>): Promise<boolean> {
  try {
    await step;
    return true;
  } catch (error) {
    if (error instanceof CommandRejected) return false;
    throw error;
  }
}
