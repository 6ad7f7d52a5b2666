import { type FieldNode, type GraphQLResolveInfo, type OperationDefinitionNode, valueFromASTUntyped } from 'graphql';
import { type GlobalPosition, laterPosition } from '../../events/global-position.ts';
import { notReady } from '../../projections/projection/not-ready.ts';
import type { ServedVersion, VersionMap } from '../../projections/projection/version-map.ts';
import { relatedFilters } from '../../projections/queries/filter-columns.ts';
import type { RowFilter } from '../../projections/queries/row-query.ts';
import { readFields, selectedNames } from '../analysis/operation-reads.ts';
import { ownFields } from '../analysis/own-fields.ts';
import { variablesOf } from '../contract/graphql-release.ts';
import type { OperationContext, ReadModels } from '../contract/operation-context.ts';
import { queryNames, uniqueLookUps } from '../types/query-names.ts';
import { parseGlobalId } from '../values/global-id.ts';

/**
 * Must run before each read of a version: the version must be active, and must have reached the position that the client requires. Returns
 * undefined if there is nothing to wait for, so most reads do not wait.
 *
 * @throws RefoldError `PROJECTION_NOT_READY`, `POSITION_TIMEOUT`
 */
export function beforeRead(
  served: ServedVersion,
  context: OperationContext,
  position: GlobalPosition | undefined,
  info: GraphQLResolveInfo,
): Promise<void> | undefined {
  if (!isActive(served, context)) return refuse(served, context);
  const demanded = demandedPosition(context, position);
  if (demanded !== null) latestDemand.set(context.readModels, demanded);
  return demanded === null ? undefined : waitForAll(served, context, demanded, info);
}

/** Like {@link beforeRead}, for related rows: they are at least as new as the row they belong to. */
export function beforeRelatedRead(served: ServedVersion, context: OperationContext): Promise<void> | undefined {
  if (!isActive(served, context)) return refuse(served, context);
  const demanded = latestDemand.get(context.readModels);
  // The row's own read waited for all versions that the operation reads.
  return demanded === undefined ? undefined : waitOnce(context.readModels, served, demanded);
}

/** Like {@link beforeRead}, for a read of an application's resolver: its rows are at least as new as those that were read before. */
export function beforeOwnRead(
  served: ServedVersion,
  context: OperationContext,
  position: GlobalPosition | undefined,
  info: GraphQLResolveInfo,
): Promise<void> | undefined {
  const latest = latestDemand.get(context.readModels);
  if (position === undefined || latest === undefined) return beforeRead(served, context, position ?? latest, info);
  return beforeRead(served, context, laterPosition(position, latest), info);
}

/** Makes the following reads of an application's resolvers require the position. */
export function demandPosition({ readModels }: OperationContext, position: GlobalPosition): void {
  const latest = latestDemand.get(readModels);
  latestDemand.set(readModels, latest === undefined ? position : laterPosition(position, latest));
}

/** Like {@link beforeRelatedRead}, for the tables that a filter uses. */
export async function beforeFilter(context: OperationContext, filter: RowFilter | null): Promise<void> {
  for (const { target, filter: inner } of relatedFilters(filter)) {
    const served = context.versions.served.get(target.projection.name);
    if (served) await beforeRelatedRead(served, context);
    await beforeFilter(context, inner);
  }
}

/** The latest required position of an operation. Mutations run one after the other, so it belongs to the payload that is being resolved. */
const latestDemand = new WeakMap<ReadModels, GlobalPosition>();

/** @throws RefoldError `PROJECTION_NOT_READY` for a subscription to a version that is not active */
export async function refuseUnlessActive(served: ServedVersion, context: OperationContext): Promise<void> {
  if (!isActive(served, context)) await refuse(served, context);
}

/** By the operation's own map: a schema outlives maps that differ only in what is active. */
function isActive({ projection }: ServedVersion, { versions }: OperationContext): boolean {
  return versions.served.get(projection.name)?.active ?? false;
}

/** The later of the positions that the operation and this part of it require. */
function demandedPosition({ after }: OperationContext, position: GlobalPosition | undefined): GlobalPosition | null {
  if (position === undefined || after === null) return position ?? after;
  return laterPosition(position, after);
}

/**
 * Waits for all versions that the operation reads. A read that did not wait would open the operation's snapshot before the other versions
 * reach the position. Throws only if the version of this read fails.
 */
async function waitForAll(
  served: ServedVersion,
  { readModels, versions }: OperationContext,
  position: GlobalPosition,
  info: GraphQLResolveInfo,
): Promise<void> {
  const own = waitOnce(readModels, served, position);
  const others = readVersions(info, versions).filter((other) => other.active && other.projection !== served.projection);
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

interface Reading {
  readonly names: ReadonlySet<string>;
  /** `node`, `nodes` and `_entities`: their arguments say what they read. */
  readonly byArguments: readonly FieldNode[];
}

const readBy = new WeakMap<OperationDefinitionNode, Reading>();

function readingOf({ operation, fragments }: GraphQLResolveInfo): Reading {
  const known = readBy.get(operation);
  if (known) return known;
  const fields = readFields(operation, fragments);
  const byArguments = fields.filter(({ name }) => ['node', 'nodes', '_entities'].includes(name.value));
  const reading = { names: new Set(fields.map(({ name }) => name.value)), byArguments };
  readBy.set(operation, reading);
  return reading;
}

function readVersions(info: GraphQLResolveInfo, versions: VersionMap): readonly ServedVersion[] {
  const { operation, fragments } = info;
  const variables = variablesOf(info);
  const { names, byArguments } = readingOf(info);
  const given = byArguments.flatMap((field) =>
    (field.arguments ?? []).flatMap(({ value }): readonly unknown[] => [valueFromASTUntyped(value, variables)].flat()),
  );
  const identified = new Set(given.map((id) => (typeof id === 'string' ? parseGlobalId(id)?.name : undefined)));
  const entities = new Set(given.map(typeNameIn));
  const nested = selectedNames(operation, fragments);
  const related = new Set(
    [...versions.served.values()]
      .flatMap(({ projection }) => Object.entries(projection.relations))
      .filter(([name]) => nested.has(name))
      .map(([, { target }]) => target),
  );
  for (const { name, targets } of ownFields(info.schema).leading.values())
    if (nested.has(name)) for (const target of targets) related.add(target);
  return [...versions.served.values()].filter(
    ({ projection }) =>
      related.has(projection.name) ||
      identified.has(projection.name) ||
      entities.has(projection.graphql.type) ||
      Object.values(queryNames(projection)).some((name) => names.has(name)) ||
      uniqueLookUps(projection).some(([, field]) => names.has(field)),
  );
}

/** The type name in a representation of an entity. */
function typeNameIn(given: unknown): unknown {
  return typeof given === 'object' && given !== null && '__typename' in given ? given.__typename : undefined;
}

async function refuse(served: ServedVersion, { readModels, versions }: OperationContext): Promise<never> {
  const now = versions.served.get(served.projection.name) ?? served;
  throw notReady(now, await readModels.progress(now.projection));
}
