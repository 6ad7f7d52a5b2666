import { RefoldError } from '../../errors.ts';
import type { GlobalPosition } from '../../events/global-position.ts';
import { hidesKey } from '../../projections/declaration/hidden-values.ts';
import { rowKeyOf } from '../../projections/projection/given-key.ts';
import { keyText, type Projection, type RowKey, storedIn } from '../../projections/projection/projection.ts';
import { readVersion } from '../../store/registry/registry.ts';
import { createReadTable } from '../../store/tables/read-table.ts';
import { scanTable } from '../../store/tables/table-scan.ts';
import { declaredVersionOf, type InspectedApplication } from './application.ts';
import { shownRow } from './stepper.ts';

/** A row that an event touches. */
export interface TouchedRow {
  readonly version: string;
  readonly projection: string;
  /** As JSON. */
  readonly key: unknown;
  /** Whether its history can be shown. */
  readonly hasHistory: boolean;
}

// An event that touches more rows is rare, and nobody reads them all.
const mostRows = 100;

/** The rows that the event at a position touches, in every declared version that handles it. */
export async function touchedRows(
  { log, config }: InspectedApplication,
  position: GlobalPosition,
): Promise<TouchedRow[]> {
  const event = await log.readAt(position);
  if (!event) return [];
  const handling = config.projections.filter(
    ({ filter, startAfter }) =>
      position > startAfter &&
      filter.some(({ family, types }) => family === event.family && types.includes(event.type)),
  );
  const rows = handling.flatMap((projection) => {
    if (hidesKey(projection)) return [];
    return keysOf(projection, event).map((key) => ({
      version: projection.id,
      projection: projection.name,
      key: jsonKey(key),
      hasHistory: projection.history !== undefined,
    }));
  });
  return rows.slice(0, mostRows);
}

/** None if `key` fails: then the event is a dead letter, skipped, or the version has stopped at it. */
function keysOf(projection: Projection, event: Parameters<Projection['keysOf']>[0]): readonly RowKey[] {
  try {
    return projection.keysOf(event);
  } catch {
    return [];
  }
}

/** A key as JSON: the value of its only column, or the values of all. */
export function jsonKey(key: RowKey): unknown {
  const values: unknown[] = JSON.parse(keyText(key));
  return values.length === 1 ? values[0] : values;
}

export interface ShownRow {
  readonly key: unknown;
  readonly row: Readonly<Record<string, unknown>>;
}

/** A page of a version's rows by key; fewer than asked for if they are large. @throws RefoldError `BAD_USER_INPUT` */
export async function readRows(
  { find, config }: InspectedApplication,
  id: string,
  first: number,
  after: unknown,
): Promise<{ readonly rows: readonly ShownRow[]; readonly next: unknown }> {
  const declared = declaredVersionOf(config, id);
  if (hidesKey(declared))
    throw new RefoldError(
      'BAD_USER_INPUT',
      `The keys of ${id} are personal or have an access rule: they can't be listed.`,
    );
  const { db } = await find.of(declared.name, declared.version);
  const found = await readVersion(db, declared);
  if (!found || found.state === 'retired') throw new RefoldError('BAD_USER_INPUT', `${id} has no table.`);
  const projection = storedIn(declared, found.tableName);
  const { readSchema } = config.database;
  const { keyOf } = createReadTable(projection, readSchema);
  const place = after === undefined ? {} : { after: rowKeyOf(projection, after) };
  const exactJson = projection.sqlFold !== undefined; // as rows are answered
  const pages = scanTable(db, readSchema, projection, { pageSize: first + 1, ...place, exactJson });
  const page = await pages.next();
  const value = page.done ? [] : page.value;
  // A page of large rows ends earlier.
  const more = value.length > first || (value.length > 0 && !(await pages.next()).done);
  const rows = value.slice(0, first).map((row) => ({ key: jsonKey(keyOf(row)), row: shownRow(projection, row) ?? {} }));
  return { rows, next: more ? rows.at(-1)?.key : null };
}
