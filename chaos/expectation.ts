import type { RecordedEvent } from '../src/index.ts';
import type { Row } from '../src/projections/columns/row-codec.ts';
import { keyText, type Projection } from '../src/projections/projection/projection.ts';
import type { Queryable } from '../src/store/statements/statement.ts';
import { type GoneLetter, readGoneLetters } from './audit.ts';
import { foldOneByOne, mendedCredits } from './domain.ts';

/** A dead letter: the row, the position, and whether it failed (or waits behind one that has). */
export type ExpectedLetter = readonly [key: string, position: bigint, failed: boolean];

export interface Expectation {
  /** By key, as the columns are encoded. */
  readonly rows: ReadonlyMap<string, unknown>;
  readonly letters: readonly ExpectedLetter[];
}

/**
 * The expected content of a read table and its dead letters: the log folded event by event and row by row, without the code that folds
 * batches. What an operator did to dead letters comes from the server's own records.
 */
export async function readExpectation(
  db: Queryable,
  projection: Projection,
  events: readonly RecordedEvent[],
): Promise<Expectation> {
  const { name, version, tableName } = projection;
  const gone = (await readGoneLetters(db)).filter((letter) => letter.name === name && letter.version === version);
  const named = (letters: readonly GoneLetter[]) =>
    new Set(letters.map(({ key, position }) => `${key === null ? null : JSON.stringify(JSON.parse(key))} ${position}`));
  return expectation(projection, events, {
    // The version remembers discards, whichever table it uses.
    discarded: named(gone.filter(({ writer, failed }) => writer === 'chaos discards' && failed)),
    // Includes letters that did not fail: one may have waited behind another letter, and would have failed when retried.
    healed: named(gone.filter((letter) => letter.writer === 'chaos retries' && letter.tableName === tableName)),
  });
}

interface Redelivered {
  readonly discarded: ReadonlySet<string>;
  readonly healed: ReadonlySet<string>;
}

export function expectation(
  projection: Projection,
  events: readonly RecordedEvent[],
  { discarded, healed }: Redelivered,
): Expectation {
  const oneByOne = foldOneByOne(projection);
  const wanted = new Set(projection.filter.flatMap(({ family, types }) => types.map((type) => `${family} ${type}`)));
  const rows = new Map<string, Row | null>();
  const blocked = new Set<string>();
  const letters: ExpectedLetter[] = [];
  for (const event of events) {
    if (!wanted.has(`${event.family} ${event.type}`)) continue;
    const keys = new Map(projection.keysOf(event).map((key) => [keyText(key), key]));
    for (const [text, key] of keys) {
      const name = `${text} ${event.position}`;
      if (discarded.has(name)) continue;
      if (blocked.has(text)) {
        letters.push([text, event.position, false]);
        continue;
      }
      const code = healed.has(name) ? mendedCredits : oneByOne;
      try {
        rows.set(text, code.apply(rows.get(text) ?? null, event, key));
      } catch {
        if (projection.onError.policy === 'skip') continue;
        blocked.add(text);
        letters.push([text, event.position, true]);
      }
    }
  }
  return {
    rows: new Map([...rows].flatMap(([text, row]) => (row ? [[text, projection.codec.encode(row)]] : []))),
    letters,
  };
}
