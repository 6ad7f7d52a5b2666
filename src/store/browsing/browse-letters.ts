import { type GlobalPosition, globalPosition } from '../../events/global-position.ts';
import { keyText, type RowKey } from '../../projections/projection/projection.ts';
import { stoppedAtEvent, stoppedAtId, stoppedAtSql } from '../processors/stopped-processors.ts';
import type { Queryable } from '../statements/statement.ts';
import type { LetterError } from '../statements/stored-json.ts';

/** Which dead letters to find. All conditions must hold. */
export interface LetterFilter {
  readonly eventType?: string | undefined;
  readonly streamId?: string | undefined;
  /** The message of the error, whole or as {@link LetterGroup} has it. */
  readonly error?: string | undefined;
  /** The frames of the error's stack as {@link LetterGroup} has them. */
  readonly stack?: string | undefined;
  /** Only those that failed, or only those that wait behind one. */
  readonly failed?: boolean | undefined;
}

/** The dead letters of one table in use, or of one reactor. */
export interface LetterSource {
  /** The version, such as `cart_summary@2`, or the reactor. */
  readonly of: string;
  readonly isReactor: boolean;
  /** The table of the version, or the name of the reactor. */
  readonly place: string;
}

export interface BrowsedLetter {
  /** Its number in the table, or its position if it is of a reactor: it grows in the order of the list. */
  readonly number: bigint;
  readonly key: RowKey | string | null;
  readonly position: GlobalPosition;
  readonly eventType: string;
  readonly streamId: string;
  readonly error: LetterError | null;
  readonly attempts: number;
  readonly at: string;
  readonly requested: 'retry' | 'discard' | null;
}

/**
 * The tables of versions that are not retired and the reactors that have dead letters or have stopped at an event; versions first, by name. Each is looked up in an index:
 * `exists` may become a join that reads all dead letters, and with an equality, they may be read in the order of their ids.
 */
export async function readLetterSources(db: Queryable, of?: string): Promise<LetterSource[]> {
  return db.query<LetterSource>({
    text: `
      select of, is_reactor as "isReactor", place
      from (
        select name || '@' || version as of, false as is_reactor, table_name as place, name, version
        from refold.projections
        where state <> 'retired'
          and (
            (
              select letter.table_name
              from refold.dead_letters as letter
              where (letter.table_name, letter.id) > (projections.table_name, 0)
              order by letter.table_name, letter.id
              limit 1
            ) = projections.table_name
            or (name, version) in (select name, version from (${stoppedAtEvent}) as stopped)
          )
        union all
        select name, true, name, name, 0
        from refold.reactors
        where (select position from refold.reactor_letters as letter where letter.reactor = reactors.name order by position limit 1) is not null
      ) as source
      where $1::text is null or of = $1
      order by is_reactor, name, version`,
    values: [of ?? null],
  });
}

const columnsOfTable = `
  id as number, key, position, event_type as "eventType", stream_id as "streamId", error, attempts, at, null as requested`;
// Before all dead letters of its version.
const stopped = `
  select id as number, key, position, type as "eventType", "streamId", error, attempts, at, null as requested
  from (${stoppedAtSql('projection.table_name = $1')}) as stopped`;
const columnsOfReactor = `
  position as number, to_jsonb(key) as key, position, event_type as "eventType", stream_id as "streamId", error, attempts, at, requested`;

/**
 * The letters of a source after a number, in order: at most `$3` of them, and the event that a version has stopped at. $1 is the place, $2 the
 * number, $4 the highest number. Of the tables of versions, pairs are compared: with an equality, the letters of all tables may be read in the
 * order of their ids.
 */
function visited({ isReactor }: LetterSource): string {
  return isReactor
    ? `select ${columnsOfReactor} from refold.reactor_letters where reactor = $1 and position > $2 and ($4::bigint is null or position <= $4) order by position limit $3`
    : `
      (${stopped} where $2 < ${stoppedAtId})
      union all
      (
        select ${columnsOfTable} from refold.dead_letters
        where (table_name, id) > ($1, $2) and (table_name, id) <= ($1, coalesce($4, ${2n ** 63n - 1n}))
        order by table_name, id
        limit $3
      )`;
}

// Each message names its event and its row: with them, the same error of a million events would be a million groups.
const place = ` at position \\d+? \\((?:stream '.*?', event [^ )]+?|event \\d+? of its stream|'[^']+?'(?: of stream '.*?')?)\\)(?=: | failed)`;
const row = ` the row \\[.*?\\] that `;
const commonMessage = `regexp_replace(regexp_replace(error ->> 'message', '${quoted(place)}', ''), '${row}', ' a row that ')`;
// Without the message, which the first lines of a stack repeat: errors of one place belong together whatever values they name.
const frames = `ltrim(regexp_replace(error ->> 'stack', '^.*?(\\n\\s+at |$)', '\\1'), E'\\n ')`;

function quoted(text: string): string {
  return text.replaceAll("'", "''");
}

const matches = `
  ($5::text is null or "eventType" = $5)
  and ($6::text is null or "streamId" = $6)
  and ($7::text is null or error ->> 'message' = $7 or ${commonMessage} = $7)
  and ($8::boolean is null or (error is not null) = $8)
  and ($9::text is null or ${frames} = $9)`;

function filterValues({ eventType, streamId, error, failed, stack }: LetterFilter): unknown[] {
  return [eventType ?? null, streamId ?? null, error ?? null, failed ?? null, stack ?? null];
}

export interface LetterWindow {
  readonly source: LetterSource;
  /** Only letters after this number. */
  readonly after: bigint;
  /** The highest number to visit. @default none */
  readonly upTo?: bigint | undefined;
  /** How many letters the statement visits at most. */
  readonly size: number;
  readonly filter: LetterFilter;
}

/** The matching letters of one window, and the last number that was visited; null if the source has no more. */
export async function readLetters(
  db: Queryable,
  { source, after, upTo, size, filter }: LetterWindow,
): Promise<{ readonly letters: BrowsedLetter[]; readonly last: bigint | null }> {
  const rows = await db.query<BrowsedLetter & { isMatch: boolean; visited: number }>({
    text: `
      with visited as materialized (${visited(source)})
      select *, ${matches} as "isMatch", (select count(*)::integer from visited) as visited
      from visited
      where (${matches}) or number = (select max(number) from visited)
      order by number`,
    values: [source.place, after, size, upTo ?? null, ...filterValues(filter)],
  });
  const found = rows.at(-1);
  return {
    letters: rows.filter(({ isMatch }) => isMatch),
    last: found && found.visited >= size ? found.number : null,
  };
}

/** By what dead letters are counted. */
export type LetterGrouping = 'error' | 'stack' | 'event' | 'stream';

export interface LetterGroup {
  /** The message, without the position and the stream of the event. */
  readonly error: string | null;
  /** The frames of the stack. */
  readonly stack: string | null;
  readonly eventType: string | null;
  readonly streamId: string | null;
  readonly count: number;
  /** Of these, those that wait behind another. */
  readonly waiting: number;
  readonly firstPosition: GlobalPosition;
  readonly lastAt: string;
}

/** Counts the matching letters of one window by groups. `last` as {@link readLetters} returns it. */
export async function countLetters(
  db: Queryable,
  { source, after, size, filter }: Omit<LetterWindow, 'upTo'>,
  by: readonly LetterGrouping[],
): Promise<{ readonly groups: LetterGroup[]; readonly visited: number; readonly last: bigint | null }> {
  const [row] = await db.query<{ groups: LetterGroup[] | null; visited: number; last: bigint | null }>({
    text: `
      with visited as materialized (${visited(source)}), groups as (
        select
          case when $10 then ${commonMessage} end as error,
          case when $11 then ${frames} end as stack,
          case when $12 then "eventType" end as "eventType",
          case when $13 then "streamId" end as "streamId",
          count(*)::integer as count,
          count(*) filter (where visited.error is null)::integer as waiting,
          min(position)::text as "firstPosition",
          max(at) as "lastAt"
        from visited
        where ${matches}
        group by 1, 2, 3, 4
        order by count(*) desc
        limit 1000
      )
      select
        (select json_agg(groups) from groups) as groups,
        (select count(*)::integer from visited) as visited,
        (select max(number) from visited) as last`,
    values: [
      source.place,
      after,
      size,
      null,
      ...filterValues(filter),
      by.includes('error'),
      by.includes('stack'),
      by.includes('event'),
      by.includes('stream'),
    ],
  });
  const { groups = null, visited: count = 0, last = null } = row ?? {};
  return {
    groups: (groups ?? []).map((group) => ({
      ...group,
      firstPosition: globalPosition(String(group.firstPosition)),
      lastAt: new Date(group.lastAt).toISOString(),
    })), // JSON has other forms
    visited: count,
    last: count >= size ? last : null,
  };
}

/** The letters of a source with these numbers. */
export async function readLettersAt(
  db: Queryable,
  source: LetterSource,
  numbers: readonly bigint[],
): Promise<BrowsedLetter[]> {
  return db.query<BrowsedLetter>({
    text: source.isReactor
      ? `select ${columnsOfReactor} from refold.reactor_letters where reactor = $1 and position = any ($2) order by position`
      : `
        (${stopped} where ${stoppedAtId} = any ($2))
        union all
        (select ${columnsOfTable} from refold.dead_letters where table_name = $1 and id = any ($2))
        order by number`,
    values: [source.place, numbers],
  });
}

/** The highest number of a source's letters; null if it has none. */
export async function highestLetter(db: Queryable, source: LetterSource): Promise<bigint | null> {
  const [row] = await db.query<{ number: bigint }>({
    text: source.isReactor
      ? 'select position as number from refold.reactor_letters where reactor = $1 order by position desc limit 1'
      : 'select id as number from refold.dead_letters where table_name = $1 order by id desc limit 1',
    values: [source.place],
  });
  return row?.number ?? null;
}

/** How many later letters of its row or key wait behind a letter: counted up to `upTo`. */
export async function countBlocked(
  db: Queryable,
  source: LetterSource,
  { key, position }: Pick<BrowsedLetter, 'key' | 'position'>,
  upTo: number,
): Promise<number> {
  if (key === null) return 0;
  const later = source.isReactor
    ? 'select from refold.reactor_letters where reactor = $1 and key = $2 and position > $3 limit $4'
    : 'select from refold.dead_letters where table_name = $1 and key = $2::jsonb and position > $3 limit $4';
  const [row] = await db.query<{ count: number }>({
    text: `select count(*)::integer as count from (${later}) as later`,
    values: [source.place, typeof key === 'string' ? key : keyText(key), position, upTo],
  });
  return row?.count ?? 0;
}
