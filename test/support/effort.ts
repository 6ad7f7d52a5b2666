import { relative } from 'node:path';
import { expect, inject } from 'vitest';
import { seed } from './seed.ts';

/** CI does everything in a third of the files, each day in the next third, so that a run stays short. */
const turns = 3;
const root = new URL('../..', import.meta.url).pathname;

/**
 * How much a test does: everything in CI when it is the turn of its file, and with `EFFORT=whole`; else less of what is expensive. Always less if
 * the same test runs again on another PostgreSQL, on which it hardly depends.
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

/** Whether CI does everything in this file on the day of this seed. On three successive days of a month, each file has its turn once. */
export function isTurnOf(file: string, ofSeed: number): boolean {
  let sum = ofSeed;
  for (const character of file) sum += character.charCodeAt(0);
  return sum % turns === 0;
}

// The run of the unit tests has no server to consider.
const isRepeated = () => inject('postgres')?.again === true;
const isAsked = () => process.env.EFFORT === 'whole';
const isCi = () => process.env.CI !== undefined;
const fileUnderTest = () => relative(root, expect.getState().testPath ?? '');
