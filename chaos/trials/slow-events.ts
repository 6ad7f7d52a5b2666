import { setTimeout as pause } from 'node:timers/promises';
import type { ReadStore } from '../../src/store/read-store.ts';
import { processorLockKey } from '../../src/store/server/lock-keys.ts';
import type { ColumnsOf } from '../../src/store/statements/statement.ts';
import { account } from '../domain.ts';
import { appendDraft } from '../traffic.ts';
import type { World } from '../world.ts';

/** An event whose fold blocked a process for longer than its lease, while no other fault was active. */
export interface SlowEvent {
  readonly slowMs: number;
  /** What the process owned when it began, and what of it another process had claimed just before the event was folded. */
  readonly owned: readonly string[];
  readonly lost: readonly string[];
}

const beforeItsEndMs = 200;
/** Later, the event is no longer slow: see {@link takeTime}. */
const longestMs = 4_000;

/** Appends it, and watches the process that folds it. At rest, everything has to be past it. Returns a line about the result. */
export async function foldSlowly(world: World, slowMs: number): Promise<string> {
  const { stores, log, ledger, trials, workers } = world;
  const appendedAt = Date.now();
  const streamId = `slow-${ledger.entries.length}`;
  const events = (append: number) => [
    { type: 'Credited' as const, payload: { append, part: 0, amount: '1', slowMs: Math.round(slowMs) } },
  ];
  const append = ledger.entries.length;
  await appendDraft(log, ledger, -1, { parts: [{ family: account, streamId, events }], exact: false, keyed: true });
  const position = ledger.entries[append]?.positions.at(-1);
  if (position === undefined) return 'not appended';
  const databases = [stores.stores.home, ...stores.stores.apart];
  const read = async () => (await Promise.all(databases.map(readUnits))).flat();
  const blocked = await firstOf(() => workers.find(({ process }) => (process?.blockedAt ?? 0) >= appendedAt)?.process);
  if (!blocked) return `at ${position}, not folded in time`;
  const before = await read();
  await pause(slowMs - beforeItsEndMs - (Date.now() - (blocked.blockedAt ?? 0))); // it can't release anything meanwhile
  const after = new Map((await read()).map((unit) => [unit.id, unit]));
  // Without a holder, it had released the unit before, and no other process had claimed it yet.
  const owned = before.filter(({ owner, holder }) => owner === blocked.owner && holder !== null);
  const lost = owned.filter(({ id, holder }) => isLost(after.get(id), holder)).map(({ id }) => id);
  trials.slowEvents.push({ slowMs, owned: owned.map(({ id }) => id), lost });
  return `at ${position}, by ${blocked.name}, which owned ${owned.length} and lost ${lost.length}`;
}

/** A unit that has ended, as with a rebuild, has no holder. */
function isLost(now: Unit | undefined, holder: string | null): boolean {
  return now !== undefined && now.holder !== null && now.holder !== holder;
}

/** What the look finds, within a few seconds. */
async function firstOf<T>(look: () => T | undefined): Promise<T | undefined> {
  const end = Date.now() + longestMs;
  for (;;) {
    const found = look();
    if (found !== undefined || Date.now() > end) return found;
    await pause(5);
  }
}

interface Unit {
  readonly id: string;
  /** The process that has claimed it last. */
  readonly owner: string | null;
  /** Identifies the lease, or the session with its lock; null if nobody has it at the moment. */
  readonly holder: string | null;
}

async function readUnits({ name: store, db }: ReadStore): Promise<readonly Unit[]> {
  const locks = await db.query<{ readonly key: bigint; readonly pid: number }>({
    text: `select key, pid from refold.advisory_locks where granted and mode = 'ExclusiveLock'`,
  });
  const units = await db.query<
    ColumnsOf<'refold.processors', 'name' | 'version' | 'partition' | 'owner'> & { lease: string | null }
  >({
    text: `
      select name, version, partition, owner, holder::text as lease
      from refold.processors
      left join (
        select name, version, partition, holder from refold.leases
        where kind = 'processor' and expires_at > clock_timestamp()
      ) as lease using (name, version, partition)`,
  });
  return units.map(({ lease, owner, ...unit }) => {
    const key = processorLockKey({ kind: 'processor', ...unit });
    const locked = locks.find((lock) => lock.key === key);
    return {
      id: `${unit.name}@${unit.version}/${unit.partition} in ${store}`,
      owner,
      holder: lease ?? (locked ? String(locked.pid) : null),
    };
  });
}
