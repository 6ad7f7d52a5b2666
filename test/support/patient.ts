/** The wait of `refold/testing`, without its own limit: a machine may stall for longer than users want to wait. */
import type { Refold } from '../../src/refold.ts';
import * as testing from '../../src/testing.ts';

/** Longer than any test's timeout, which is the only limit. */
const patient = { timeout: 3_600_000 } as const;

export const untilCaughtUp = (refold: Refold) => testing.untilCaughtUp(refold, patient);

export const untilPosition = (refold: Refold, position: Parameters<typeof testing.untilPosition>[1]) =>
  testing.untilPosition(refold, position, patient);

export const untilActive = (refold: Refold, version: string) => testing.untilActive(refold, version, patient);

export const untilAnswer = (refold: Refold, query: string, expected: Readonly<Record<string, unknown>>) =>
  testing.untilAnswer(refold, query, expected, patient);
