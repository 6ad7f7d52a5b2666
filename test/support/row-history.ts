import { isDeepStrictEqual } from 'node:util';
import type { Column, Projection, RecordedEvent } from '../../src/index.ts';
import type { Row } from '../../src/projections/columns/row-codec.ts';
import { fold, foldSteps } from '../../src/projections/fold/fold.ts';

/** Positions of the log, excluding the last one. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

interface State {
  readonly since: number;
  readonly row: Row | null;
}

export const always: Span = { from: 0, to: Number.POSITIVE_INFINITY };

/** The intersection of both spans; undefined if it is empty. */
export function common(a: Span | undefined, b: Span | undefined): Span | undefined {
  if (!a || !b) return undefined;
  const span = { from: Math.max(a.from, b.from), to: Math.min(a.to, b.to) };
  return span.from < span.to ? span : undefined;
}

/** Every state of the rows of a projection, and from which position on: one fold of the log, event by event. */
export class RowHistory {
  readonly #projection: Projection;
  readonly #states = new Map<string, State[]>();

  constructor(projection: Projection) {
    this.#projection = projection;
  }

  /** The next events of the log. */
  learn(events: readonly RecordedEvent[]): void {
    for (const event of events) {
      const since = Number(event.position);
      const memory = {
        get: (text: string) => this.#states.get(text)?.at(-1)?.row ?? null,
        set: (text: string, _: unknown, row: Row | null) => {
          const before = this.#states.get(text);
          if (before) before.push({ since, row });
          else this.#states.set(text, [{ since, row }]);
        },
      };
      fold(this.#projection, foldSteps(this.#projection, [event]), memory, { freeze: false });
    }
  }

  /** The texts of all keys that have ever had a row. */
  keys(): Iterable<string> {
    return this.#states.keys();
  }

  at(text: string, position: number): Row | null {
    return this.#states.get(text)?.findLast(({ since }) => since <= position)?.row ?? null;
  }

  /** The positions at which a row had the state that GraphQL returned. */
  spanOf(text: string, answer: Readonly<Record<string, unknown>> | null): Span | undefined {
    const states = this.#states.get(text) ?? [];
    if (answer === null) return { from: 0, to: states[0]?.since ?? always.to };
    const index = states.findLastIndex(({ row }) => isDeepStrictEqual(this.answer(row, Object.keys(answer)), answer));
    const state = states[index];
    return state && { from: state.since, to: states[index + 1]?.since ?? always.to };
  }

  /** The positions at which rows of these keys were created, in order. */
  beginnings(texts: Iterable<string>): number[] {
    return [...texts].map((text) => this.#states.get(text)?.[0]?.since ?? always.to).sort((a, b) => a - b);
  }

  /** A row as GraphQL returns it, with these fields. */
  answer(row: Row | null, fields: readonly string[]): Record<string, unknown> | null {
    if (row === null) return null;
    const { graphql, columns } = this.#projection;
    return Object.fromEntries(
      fields.map((field) => [
        field,
        field === '__typename' ? graphql.type : graphqlValue(columns[field] as Column, row[field]), // otherwise the schema would have refused it
      ]),
    );
  }
}

function graphqlValue({ type }: Column, value: unknown): unknown {
  if (value === null) return null;
  switch (type.kind) {
    case 'decimal':
      return (value as { toFixed(digits: number): string }).toFixed(type.scale);
    case 'list':
      return (value as unknown[]).map((item) => graphqlValue(type.item, item));
    case 'object':
      return Object.fromEntries(
        Object.entries(type.fields).map(([name, column]) => [name, graphqlValue(column, (value as Row)[name])]),
      );
    default:
      return value;
  }
}
