import { setTimeout as pause } from 'node:timers/promises';
import type { ReadStore } from '../../src/store/read-store.ts';
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
  const owned = before.filter(({ owner }) => owner === blocked.owner);
  const lost = owned.filter(({ id, epoch, owner }) => isLost(after.get(id), epoch, owner)).map(({ id }) => id);
  trials.slowEvents.push({ slowMs, owned: owned.map(({ id }) => id), lost });
  return `at ${position}, by ${blocked.name}, which owned ${owned.length} and lost ${lost.length}`;
}

/** The end of a rebuild or of a move also has a new epoch, and leaves the owner; a version that becomes live has none. */
function isLost(now: Unit | undefined, epoch: bigint, owner: string | null): boolean {
  return now !== undefined && now.epoch !== epoch && now.owner !== null && now.owner !== owner;
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
  readonly owner: string | null;
  readonly epoch: bigint;
}

function readUnits({ name: store, db }: ReadStore): Promise<readonly Unit[]> {
  return db.query<Unit>({
    text: `
      select name || '@' || version || '/' || partition || ' in ' || $1 as id, owner, epoch
      from refold.processors`,
    values: [store],
  });
}
