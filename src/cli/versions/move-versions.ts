import { setTimeout as pause } from 'node:timers/promises';
import type { Config } from '../../config/define-config.ts';
import { isDistributedIn } from '../../config/read-store-options.ts';
import { RefoldError } from '../../errors.ts';
import { distributedProblem } from '../../projections/projection/distributed-problem.ts';
import { defaultStore, type Projection } from '../../projections/projection/projection.ts';
import { whoRebuilds } from '../../runtime/actions/rebuild-actions.ts';
import { arrive } from '../../runtime/moves/arrivals.ts';
import { beginMove, cancelMove } from '../../runtime/moves/begin-move.ts';
import { relationsApart } from '../../runtime/moves/relations-apart.ts';
import { readLiveProcesses } from '../../store/ownership/live-processes.ts';
import type { ReadStore } from '../../store/read-store.ts';
import { currentCopies } from '../../store/registry/copies.ts';
import { readRegistry } from '../../store/registry/registry.ts';
import { declaredVersion } from '../shared/declared-version.ts';
import { integer, json } from '../shared/format.ts';
import { type Operation, withOperation } from '../shared/open-operation.ts';
import { storeNamed } from '../shared/store-argument.ts';

export interface MoveArguments {
  readonly version: string;
  readonly cancel?: boolean | undefined;
  readonly detach?: boolean | undefined;
  readonly json?: boolean | undefined;
  readonly reason?: string | undefined;
  readonly 'accept-dead-letters'?: boolean | undefined;
  readonly 'from-snapshot'?: string | undefined;
  readonly 'from-position'?: string | undefined;
  readonly 'in-place'?: boolean | undefined;
  readonly wait?: boolean | undefined;
}

/** `refold rebuild --store`: builds versions in another store, which has them from then on. */
export async function moveVersions(config: Config, storeName: string, args: MoveArguments): Promise<void> {
  const accepts = args['accept-dead-letters'] === true;
  const other = args['from-snapshot'] ?? args['from-position'] ?? args['in-place'] ?? args.wait;
  if (other || (accepts && args.cancel))
    throw new RefoldError(
      'INVALID_CONFIG',
      '--store can only be combined with --cancel, --accept-dead-letters, --detach.',
    );
  await withOperation(config, async (operation) => {
    const to = storeNamed(operation.stores, storeName);
    const projections = await versionsOf(config, operation, to, args.version);
    const step = { actor: operation.actor, reason: args.reason ?? 'by hand' };
    const { readSchema } = config.database;
    if (args.cancel) {
      for (const projection of projections) await cancelMove(to.db, projection, readSchema, step);
      return say(
        args,
        { cancelled: true },
        projections,
        to,
        (list) => `The move of ${list} to the read store '${to.name}' is cancelled.`,
      );
    }
    const warnings: string[] = [];
    if (accepts) await accept(config, operation, to, projections);
    else {
      warnings.push(...(await warningsOf(config, operation, to, projections)));
      for (const projection of projections) expectFits(config, to, projection);
      const moving = projections.map(async (projection) => ({
        projection,
        from: await operation.find.of(projection.name, projection.version),
      }));
      const built = await beginMove(await Promise.all(moving), { to, readSchema, step });
      if (!args.json) {
        for (const warning of warnings) console.log(`Warning: ${warning}`);
        await sayWhoBuilds(to, built);
      }
    }
    const warned = warnings.length > 0 ? { warnings } : {};
    if (args.detach)
      return say(
        args,
        { asked: true, ...warned },
        projections,
        to,
        (list) =>
          `The read store '${to.name}' has ${list} when all are complete: 'refold status' shows how far they are.`,
      );
    await follow(to, projections);
    say(args, { moved: true, ...warned }, projections, to, (list) => `The read store '${to.name}' has ${list} now.`);
  });
}

/** Related versions that will be in two stores: clients would notice it first. */
async function warningsOf(
  { projections: declared, gateway }: Config,
  { find }: Operation,
  { name: store }: ReadStore,
  projections: readonly Projection[],
): Promise<readonly string[]> {
  const fails = gateway.acrossStores
    ? 'queries that filter over the relation fail'
    : 'queries over the relation fail; gateway.acrossStores allows those that do not filter over it';
  return relationsApart(projections, store, declared, await find.copies()).map(({ moving, staying, store: other }) => {
    const wayOut =
      staying.mode === 'inline' && store !== defaultStore
        ? `${staying.id} is inline, so it can't move.`
        : `'refold rebuild ${moving.id},${staying.id} --store ${store}' moves them together.`;
    return `${moving.id} is related to ${staying.id}, which is in the store '${other}'. While they are in two stores, ${fails}. ${wayOut}`;
  });
}

async function sayWhoBuilds({ name, db }: ReadStore, built: readonly Projection[]): Promise<void> {
  if (built.length > 0 && (await readLiveProcesses(db)).length === 0)
    return console.log(
      `No running process knows the read store '${name}'. Deploy the configuration with it: the move begins then.`,
    );
  for (const { id } of built) console.log(await whoRebuilds(db, id, false));
}

/** @throws RefoldError `INVALID_TRANSITION` if a Citus cluster can't distribute the version */
function expectFits({ readStores, projections }: Config, to: ReadStore, projection: Projection): void {
  const there = { ...projection, store: to.name };
  const problem = isDistributedIn(readStores, there) ? distributedProblem(there, projections) : undefined;
  if (problem !== undefined) throw new RefoldError('INVALID_TRANSITION', `${projection.id}: ${problem}`);
}

/** @throws RefoldError `INVALID_TRANSITION` if there is nothing to move */
async function versionsOf(
  config: Config,
  { find }: Operation,
  to: ReadStore,
  named: string,
): Promise<readonly Projection[]> {
  if (named !== 'all') return named.split(',').map((id) => declaredVersion(config, id.trim()));
  const copies = await find.copies();
  const arriving = copies.filter(
    ({ store, arrivingFrom, state }) => store === to.name && arrivingFrom && state !== 'retired',
  );
  const elsewhere = currentCopies(copies).filter(({ store, state }) => store !== to.name && state === 'active');
  const wanted = arriving.length > 0 ? arriving : elsewhere;
  const found = config.projections.filter(
    ({ name, version, mode }) =>
      mode !== 'inline' && wanted.some((one) => one.name === name && one.version === version),
  );
  if (found.length > 0) return found;
  throw new RefoldError(
    'INVALID_TRANSITION',
    `Every active version that can move is in the store '${to.name}' already.`,
  );
}

async function accept(
  { projections: declared, database }: Config,
  { stores, log, actor }: Operation,
  { name: store }: ReadStore,
  [projection, ...others]: readonly Projection[],
): Promise<void> {
  if (!projection || others.length > 0)
    throw new RefoldError(
      'INVALID_CONFIG',
      'Name one version, such as cart_summary@2, whose dead letters are accepted.',
    );
  const { readSchema } = database;
  const options = { stores, store, log, readSchema, projections: declared, owner: actor };
  const arrived = await arrive(options, projection.id);
  if (arrived.length > 0) return;
  throw new RefoldError(
    'INVALID_TRANSITION',
    `${projection.id} can't take over in '${store}' yet: it, or another version that moves there with it, is not complete or is held, too. 'refold status' shows them.`,
  );
}

const betweenPolls = 200;

/** Waits until the versions have taken over. Ctrl-C ends the wait, not the move. */
async function follow({ name: store, db }: ReadStore, projections: readonly Projection[]): Promise<void> {
  for (;;) {
    const copies = (await readRegistry(db)).filter((one) =>
      projections.some(({ name, version }) => one.name === name && one.version === version),
    );
    const arriving = copies.filter(({ arrivingFrom }) => arrivingFrom !== null);
    if (arriving.length === 0) return;
    for (const { name, version, state, heldReason, error, status, checkpoint } of arriving) {
      const id = `${name}@${version}`;
      if (state === 'retired') throw new RefoldError('INVALID_TRANSITION', `The move of ${id} was cancelled.`);
      if (heldReason !== null)
        throw new RefoldError('INVALID_TRANSITION', `${id} does not take over in '${store}': ${heldReason}`);
      if (status === 'stopped')
        throw new RefoldError(
          'EVOLVE_FAILED',
          `The move of ${id} has stopped at position ${integer(checkpoint)}: ${error?.message} The old copy answers; 'refold rebuild ${id} --store ${store} --cancel' ends the move.`,
        );
    }
    await pause(betweenPolls);
  }
}

function say(
  args: MoveArguments,
  outcome: object,
  projections: readonly Projection[],
  { name: store }: ReadStore,
  text: (list: string) => string,
): void {
  const versions = projections.map(({ id }) => id);
  console.log(args.json ? json({ versions, store, ...outcome }) : text(versions.join(', ')));
}
