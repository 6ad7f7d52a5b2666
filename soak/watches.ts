import type { Projection } from '../src/index.ts';
import type { Row } from '../src/projections/columns/row-codec.ts';
import type { NaiveApi } from '../test/refold/naive-answers.ts';
import { toldRow } from './account-client.ts';
import type { ClientRecord } from './client-record.ts';
import { difference } from './difference.ts';
import type { Watch } from './watcher.ts';

type Json = Readonly<{ [name: string]: unknown }>;

/** A watch whose state can be checked at rest. */
export interface RestingWatch extends Watch {
  /** A sentence about the first difference; undefined if its state is as expected. */
  difference(rest: Resting): Promise<string | undefined>;
}

export interface Resting {
  readonly naive: NaiveApi;
  readonly rows: ReadonlyMap<string, readonly Row[]>;
}

/** One row, in its current state. */
export function watchRow(field: string, argument: string, selection: string): RestingWatch {
  const text = `${field}(${argument}) ${selection}`;
  let latest: unknown;
  return {
    name: `the row ${field}(${argument})`,
    query: `subscription { ${text} }`,
    variables: {},
    apply: (data) => {
      latest = data[field];
    },
    difference: async ({ naive }) => difference(latest, await answered(naive, `{ ${text} }`, field)),
  };
}

interface ListUpdate {
  readonly position: string;
  readonly snapshot: readonly Json[] | null;
  readonly entered: readonly Json[];
  readonly changed: readonly Json[];
  readonly left: readonly Json[];
}

/** The rows of a list. */
export function watchList(
  field: string,
  args: string,
  key: string,
  columns: string,
  record: ClientRecord,
): RestingWatch {
  const list = new Map<unknown, Json>();
  let position = 0n;
  const name = `the list ${field}(${args})`;
  return {
    name,
    query: `subscription { ${field}(${args}) { position snapshot { ${columns} } entered { ${columns} } changed { ${columns} } left { ${key} } } }`,
    variables: {},
    apply(data) {
      const update = data[field] as ListUpdate;
      if (update.snapshot) list.clear();
      else if (BigInt(update.position) < position)
        record.isWrong(`${name} went back from ${position} to ${update.position}`);
      position = BigInt(update.position);
      for (const row of update.left) list.delete(row[key]);
      for (const row of [...(update.snapshot ?? []), ...update.entered, ...update.changed]) list.set(row[key], row);
    },
    async difference({ naive }) {
      const page = (await answered(naive, `{ ${field}(${args}) { nodes { ${columns} } } }`, field)) as {
        nodes: Json[];
      };
      const byKey = (rows: Iterable<Json>) => [...rows].toSorted((a, b) => (String(a[key]) < String(b[key]) ? -1 : 1));
      return difference(byKey(list.values()), byKey(page.nodes));
    },
  };
}

interface Changes {
  readonly position: string;
  readonly cursor: string | null;
  readonly reset: boolean;
  readonly lagged: string | null;
  readonly changes: readonly { readonly operation: string; readonly key: Json; readonly row: Json | null }[];
}

/** A copy of a whole read model, which resumes from its cursor. */
export function watchChanges(
  projection: Projection,
  key: string,
  columns: readonly string[],
  record: ClientRecord,
): RestingWatch {
  const field = `${projection.graphql.single}Changes`;
  const copy = new Map<unknown, Json | null>();
  let cursor: string | null = null;
  let position = 0n;
  let messages = 0;
  return {
    name: `the changes of ${projection.name}`,
    query: `subscription ($since: String) {
      ${field}(since: $since) { position cursor reset lagged changes { operation key { ${key} } row { ${columns.join(' ')} } } }
    }`,
    variables: {},
    get cursor() {
      return cursor;
    },
    apply(data) {
      const message = data[field] as Changes;
      if (message.reset) {
        copy.clear();
        if (messages > 0) record.happened(`a feed of ${projection.name} was reset: ${message.lagged}`);
      } else if (BigInt(message.position) < position)
        record.isWrong(`the changes of ${projection.name} went back from ${position} to ${message.position}`);
      messages++;
      position = BigInt(message.position);
      for (const { operation, key: of, row } of message.changes)
        if (operation === 'DELETE') copy.delete(of[key]);
        else copy.set(of[key], row);
      if (message.cursor !== null) cursor = message.cursor;
    },
    async difference({ rows }) {
      const expected = new Map(
        (rows.get(projection.name) ?? []).map((row) => [row[key], toldRow(projection, row, columns)]),
      );
      for (const name of new Set([...expected.keys(), ...copy.keys()])) {
        const wrong = difference(copy.get(name) ?? null, expected.get(name) ?? null);
        if (wrong) return `${name}: ${wrong}`;
      }
      return undefined;
    },
  };
}

async function answered(naive: NaiveApi, query: string, field: string): Promise<unknown> {
  const { data, errors } = await naive.answer({ query, variables: {} }, () => true);
  if (errors) throw errors[0];
  return JSON.parse(JSON.stringify(data?.[field] ?? null));
}
