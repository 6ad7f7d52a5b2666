import { relative } from 'node:path';
import { expect, inject } from 'vitest';
import { seed } from './seed.ts';
import { isTurnOf } from './turns.ts';

const root = new URL('../..', import.meta.url).pathname;

/**
 * How much a test does: everything in CI on the days that are its file's turn, and with `EFFORT=whole`; else less of what is expensive. Always
 * less if the same test runs again on another PostgreSQL, on which it hardly depends.
 */
export function effort(whole: number, less: number): number {
  return isRepeated() || !(isAsked() || (isCi() && isTurnOf(fileUnderTest(), seed))) ? less : whole;
}

/** As `effort`, but everything in each run of CI. */
export function dailyEffort(whole: number, less: number): number {
  return isRepeated() || !(isAsked() || isCi()) ? less : whole;
}

/** How many lines of a large real file a test reads, from its beginning: with `WHOLE_FILES=1` all of them, which takes minutes. */
export function linesToRead(inCi: number, less: number): number {
  return process.env.WHOLE_FILES === undefined ? effort(inCi, less) : Number.POSITIVE_INFINITY;
}

// The run of the unit tests has no server to consider.
const isRepeated = () => inject('postgres')?.again === true;
const isAsked = () => process.env.EFFORT === 'whole';
const isCi = () => process.env.CI !== undefined;
const fileUnderTest = () => relative(root, expect.getState().testPath ?? '');
