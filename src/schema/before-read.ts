import type { GraphQLResolveInfo, OperationDefinitionNode } from 'graphql';
import { RefoldError } from '../errors.ts';
import { type GlobalPosition, laterPosition } from '../events/global-position.ts';
import type { ServedVersion, VersionMap } from '../projections/version-map.ts';
import type { OperationContext, ReadModels } from './operation-context.ts';
import { readFields, selectedNames } from './operation-reads.ts';
import { queryNames } from './query-names.ts';

/**
 * What comes before a read of a version: it must be active, and have reached the position that the client demands.
 * Gives nothing where there is nothing to wait for, so that most reads wait for nothing.
 *
 * @throws RefoldError `PROJECTION_NOT_READY`, `POSITION_TIMEOUT`
 */
export function beforeRead(
  served: ServedVersion,
  context: OperationContext,
  position: GlobalPosition | undefined,
  info: GraphQLResolveInfo,
): Promise<void> | undefined {
  if (!served.active) return refuse(served, context);
  const demanded = demandedPosition(context, position);
  if (demanded !== null) latestDemand.set(context.readModels, demanded);
  return demanded === null ? undefined : waitForAll(served, context, demanded, info);
}

/** As {@link beforeRead}, for what a row leads to: it is as new as what the row was read with. */
export function beforeRelatedRead(served: ServedVersion, context: OperationContext): Promise<void> | undefined {
  if (!served.active) return refuse(served, context);
  const demanded = latestDemand.get(context.readModels);
  // The row's own read waited for all that the operation reads.
  return demanded === undefined ? undefined : waitOnce(context.readModels, served, demanded);
}

/** Of one operation; mutations run one after the other, so that the latest demand is the one of the payload that is being answered. */
const latestDemand = new WeakMap<ReadModels, GlobalPosition>();

/** Throws what a subscription to a version that is not active is answered with. */
export async function refuseUnlessActive(served: ServedVersion, context: OperationContext): Promise<void> {
  if (!served.active) await refuse(served, context);
}

/** The later of what the operation demands and what this part of it does. */
function demandedPosition({ after }: OperationContext, position: GlobalPosition | undefined): GlobalPosition | null {
  if (position === undefined || after === null) return position ?? after;
  return laterPosition(position, after);
}

/**
 * Waits for all versions that the operation reads: a read that went ahead would open the operation's snapshot before the others have
 * what they wait for. Only what is read here can fail here.
 */
async function waitForAll(
  served: ServedVersion,
  { readModels, versions }: OperationContext,
  position: GlobalPosition,
  info: GraphQLResolveInfo,
): Promise<void> {
  const own = waitOnce(readModels, served, position);
  const others = readVersions(info, versions).filter((other) => other.active && other !== served);
  await Promise.allSettled([own, ...others.map((other) => waitOnce(readModels, other, position))]);
  await own;
}

const waits = new WeakMap<ReadModels, Map<string, Promise<void>>>();

function waitOnce(readModels: ReadModels, { projection }: ServedVersion, position: GlobalPosition): Promise<void> {
  const known = waits.get(readModels) ?? new Map<string, Promise<void>>();
  waits.set(readModels, known);
  const key = `${projection.id} ${position}`;
  const waiting = known.get(key) ?? readModels.waitFor(projection, position);
  known.set(key, waiting);
  return waiting;
}

const readBy = new WeakMap<OperationDefinitionNode, ReadonlySet<string>>();

function readVersions({ operation, fragments }: GraphQLResolveInfo, versions: VersionMap): readonly ServedVersion[] {
  const names = readBy.get(operation) ?? new Set(readFields(operation, fragments).map(({ name }) => name.value));
  readBy.set(operation, names);
  const nested = selectedNames(operation, fragments);
  const related = new Set(
    [...versions.served.values()]
      .flatMap(({ projection }) => Object.entries(projection.relations))
      .filter(([name]) => nested.has(name))
      .map(([, { target }]) => target),
  );
  return [...versions.served.values()].filter(
    ({ projection }) =>
      related.has(projection.name) || Object.values(queryNames(projection)).some((name) => names.has(name)),
  );
}

async function refuse({ projection }: ServedVersion, context: OperationContext): Promise<never> {
  const { name, version, id } = projection;
  const { state, position, head, progress } = await context.readModels.progress(projection);
  const fields = { projection: name, version, state, position: String(position), head: String(head), progress };
  const percent = Math.floor(progress * 100);
  throw new RefoldError(
    'PROJECTION_NOT_READY',
    `${id} is ${state} and not active yet: ${percent} % done, at position ${position} of ${head}. Ask again later.`,
    fields,
  );
}
