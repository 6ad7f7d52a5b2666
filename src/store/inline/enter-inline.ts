import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { keyText, type Projection, type RowKey } from '../../projections/declaration/projection.ts';
import type { CheckedAppend, UnplacedEvent } from '../log/append-request.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import type { Queryable } from '../postgres/statement.ts';
import { inlineRowLockKey, inlineRowsLockKey } from '../server/lock-keys.ts';
import { heldAmong, type InlineLock, inlineLocksOf } from './inline-locks.ts';

/** A version that wants events of a batch, and its rows that they touch; null where they can't be told before the append. */
export interface Touched {
  readonly projection: Projection;
  readonly keys: ReadonlyMap<string, RowKey> | null;
}

// The locks of a server are a table of bounded size, 6,400 by default and for all sessions.
const mostRowLocks = 512;

/** The table of each version to fold into, null for those that are to be left alone; with the rows locked, see the migration. */
export async function enterInline(
  tx: Queryable,
  batch: readonly CheckedAppend[],
  entering: {
    readonly touched: readonly Touched[];
    /** Versions that this process could fold into, but that want nothing of the batch. */
    readonly others: readonly Projection[];
    readonly lockTimeoutMs: number | undefined;
  },
): Promise<(string | null)[]> {
  const { touched, others, lockTimeoutMs } = entering;
  const families = new Set(batch.flatMap(({ prepared }) => prepared.parts.map(({ family }) => family)));
  const whole = touched.map(({ keys }) => keys === null || keys.size > mostRowLocks);
  const rows = touched.flatMap(({ projection, keys }, index) =>
    whole[index] || !keys
      ? []
      : [...keys.keys()].map((text) => ({ owner: index + 1, key: inlineRowLockKey(projection.id, text) })),
  );
  rows.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
  const known = [...touched.map(({ projection }) => projection), ...others];
  const entered = tx.query<{ tables: (string | null)[] }>({
    name: 'enter inline',
    text: 'select refold.enter_inline($1, $2, $3, $4, $5, $6, $7, $8) as tables',
    values: [
      [...families],
      known.map(({ name }) => name),
      known.map(({ version }) => version),
      touched.map(({ projection }) => inlineRowsLockKey(projection.id)),
      whole,
      rows.map(({ owner }) => owner),
      rows.map(({ key }) => key),
      lockTimeoutMs === undefined ? null : Math.trunc(lockTimeoutMs),
    ],
  });
  const [row] = await entered.catch((error: unknown) => {
    if (!(error instanceof RefoldError) || sqlStateOf(error) !== lockNotAvailable) throw error;
    const locks = touched.flatMap(({ projection, keys }, index) =>
      inlineLocksOf(projection, whole[index] ? null : keys),
    );
    throw new WaitedForRows(locks, error);
  });
  if (!row) throw new Error('a select without a table gives one row');
  return row.tables;
}

export function touchedRows(projection: Projection, batch: readonly CheckedAppend[]): Touched {
  const keys = new Map<string, RowKey>();
  for (const { events } of batch) {
    for (const event of events) {
      if (!wants(projection, event)) continue;
      try {
        for (const key of projection.keysOf(unplaced(event))) keys.set(keyText(key), key);
      } catch {
        // Asks where the event is, or fails: the fold tells which, once the event has its place.
        return { projection, keys: null };
      }
    }
  }
  return { projection, keys };
}

/** An event as far as it is known before it is written: to ask for the rest is an error. */
class Unplaced {
  get position(): never {
    throw new TypeError('position is not known yet');
  }
  get streamPosition(): never {
    throw new TypeError('streamPosition is not known yet');
  }
  get recordedAt(): never {
    throw new TypeError('recordedAt is not known yet');
  }
}

function unplaced(event: UnplacedEvent): RecordedEvent {
  return Object.assign(new Unplaced(), event);
}

export function wants({ filter }: Projection, { family, type }: Pick<RecordedEvent, 'family' | 'type'>): boolean {
  return filter.some((entry) => entry.family === family && entry.types.includes(type));
}

const lockNotAvailable = '55P03';

/** Somebody else holds what the batch had to lock, for too long. Who it is can be asked once the transaction is rolled back. */
export class WaitedForRows extends Error {
  readonly locks: readonly InlineLock[];
  override readonly cause: RefoldError;

  constructor(locks: readonly InlineLock[], cause: RefoldError) {
    super(cause.message);
    this.locks = locks;
    this.cause = cause;
  }
}

/** The server's error, with what is held as its field `inline`. */
export async function whoHolds(db: Queryable, { locks, cause }: WaitedForRows): Promise<RefoldError> {
  const held = await heldAmong(db, locks);
  // Where it is free again already, one of them it was; without any, it was a version that the append is nothing to.
  const [what = 'rows of an inline projection'] = (held.length > 0 ? held : locks).map((lock) => lock.what);
  const message = `${cause.message}: ${what}`;
  return new RefoldError(cause.code, message, { ...cause.fields, inline: what }, { cause });
}
