import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { recordMove } from '../../store/registry/copies.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { answersClients, processesText } from '../versions/answering-versions.ts';
import { refused, type TransitionReason } from '../versions/expect-version.ts';
import { retireVersion } from '../versions/lifecycle.ts';

export interface RetireCopyOptions {
  readonly name: string;
  readonly version: number;
  /** The store whose copy is retired. */
  readonly store: ReadStore;
  /** The store that has the version now. */
  readonly current: ReadStore;
  readonly readSchema: string;
  readonly graceSeconds: number;
}

/**
 * Retires the copy that a move has left in a store. Processes that do not know the store of the version answer from this copy: they would lose
 * the version.
 *
 * @throws RefoldError `INVALID_TRANSITION` if there is none, if it is the one that counts or is being built, or if a running process does not know the
 * other store
 */
export async function retireCopy(
  { name, version, store, current, readSchema, graceSeconds }: RetireCopyOptions,
  step: TransitionReason,
  force = false,
): Promise<void> {
  if (store.name === current.name)
    throw refused(
      name,
      version,
      `is in the store '${store.name}' alone, or answers from there. 'refold retire ${name}@${version}' retires it.`,
    );
  const copy = (await readRegistry(store.db)).find((one) => one.name === name && one.version === version);
  if (!copy || (copy.state === 'retired' && copy.arrivingFrom === null))
    throw refused(name, version, `has no copy in the store '${store.name}'; it is in '${current.name}'.`);
  if (copy.arrivingFrom !== null)
    throw refused(
      name,
      version,
      `is on its way to the store '${store.name}'. 'refold rebuild ${name}@${version} --store ${store.name} --cancel' ends the move.`,
    );
  const known = new Set((await readLiveProcesses(current.db)).map((one) => one.name));
  const losing = (await readLiveProcesses(store.db)).filter(
    (one) => answersClients(one) && one.versions.includes(`${name}@${version}`) && !known.has(one.name),
  );
  if (losing.length > 0 && !force)
    throw refused(
      name,
      version,
      `answers the clients of ${processesText(losing)} from the store '${store.name}': these processes do not know the store '${current.name}'. Deploy the configuration with it there first, or use --yes.`,
    );
  await store.db.transaction(async (tx) => {
    await retireVersion(tx, readSchema, { name, version }, step, graceSeconds);
    await recordMove(tx, { name, version }, current.name);
  });
}
