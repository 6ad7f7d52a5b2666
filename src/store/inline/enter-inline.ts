import { RefoldError } from '../../errors.ts';
import type { RecordedEvent } from '../../events/event.ts';
import { keyText, type Projection, type RowKey } from '../../projections/projection/projection.ts';
import { type AppendLock, advisoryLock } from '../log/append-locks.ts';
import type { CheckedAppend, UnplacedEvent } from '../log/append-request.ts';
import { sqlStateOf } from '../postgres/database-errors.ts';
import { inlineRowLockKey, inlineRowsLockKey } from '../server/lock-keys.ts';
import type { Queryable } from '../statements/statement.ts';
import { heldAmong, type InlineLock, inlineLocksOf } from './inline-locks.ts';

/** A version that handles events of a batch, and the rows that they change. `keys` is null if they cannot be known before the append. */
export interface Touched {
  readonly projection: Projection;
  readonly keys: ReadonlyMap<string, RowKey> | null;
}

// The lock table of a server has a fixed size: 6,400 by default, for all sessions.
const maxRowLocks = 512;

/** Locks the rows and returns the table of each version to fold into; null for versions to skip. See the migration. */
export async function enterInline(
  tx: Queryable,
  batch: readonly CheckedAppend[],
  entering: {
    readonly touched: readonly Touched[];
    /** Versions of this process that handle no event of the batch. */
    readonly others: readonly Projection[];
    readonly lockTimeoutMs: number | undefined;
  },
): Promise<(string | null)[]> {
  const { touched, others, lockTimeoutMs } = entering;
  const families = new Set(batch.flatMap(({ prepared }) => prepared.parts.map(({ storedFamily }) => storedFamily)));
  const whole = touched.map(isWhole);
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
    throw new WaitedForRows(touched.flatMap(locksTouched), error);
  });
  if (!row) throw new Error('a select without a table must return one row');
  return row.tables;
}

const isWhole = ({ keys }: Touched) => keys === null || keys.size > maxRowLocks;

/** The locks that an append takes to fold into a version. */
export function locksToFold(touched: Touched): AppendLock[] {
  return locksTouched(touched).map((lock) => advisoryLock('inline', lock));
}

function locksTouched(touched: Touched): InlineLock[] {
  return inlineLocksOf(touched.projection, isWhole(touched) ? null : touched.keys);
}

export function touchedRows(projection: Projection, batch: readonly CheckedAppend[]): Touched {
  const keys = new Map<string, RowKey>();
  for (const { events } of batch) {
    for (const event of events) {
      if (!wants(projection, event)) continue;
      try {
        for (const key of projection.keysOf(unplaced(event))) keys.set(keyText(key), key);
      } catch {
        // `key` reads the position, or fails. The fold finds out which, when the event has its position.
        return { projection, keys: null };
      }
    }
  }
  return { projection, keys };
}

/** The fields of an event that are unknown before it is written. Reading one throws. */
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

/** Another session held a lock of the batch for too long. After the rollback, {@link whoHolds} can find that session. */
export class WaitedForRows extends Error {
  readonly locks: readonly InlineLock[];
  override readonly cause: RefoldError;

  constructor(locks: readonly InlineLock[], cause: RefoldError) {
    super(cause.message);
    this.locks = locks;
    this.cause = cause;
  }
}

/** The server's error with a field `inline` that names what is locked. */
export async function whoHolds(db: Queryable, { locks, cause }: WaitedForRows): Promise<RefoldError> {
  const held = await heldAmong(db, locks);
  // If the locks are free again, it names the first one that was requested. If none was, a version without events in the batch held the
  // append.
  const [what = 'rows of an inline projection'] = (held.length > 0 ? held : locks).map((lock) => lock.what);
  const message = `${cause.message}: ${what}`;
  return new RefoldError(cause.code, message, { ...cause.fields, inline: what }, { cause });
}
