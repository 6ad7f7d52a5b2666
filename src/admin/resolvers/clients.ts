import { RefoldError } from '../../errors.ts';
import { hiddenText, hidesKey } from '../../projections/declaration/hidden-values.ts';
import { type Projection, partialText } from '../../projections/projection/projection.ts';
import { boundedCount, declaredVersionOf, versionName } from '../../runtime/inspection/application.ts';
import { jsonKey } from '../../runtime/inspection/rows.ts';
import type { UsedChanges } from '../../runtime/schema-changes/change-usage.ts';
import { storeOfBoth } from '../../runtime/stores/steps-of-stores.ts';
import { diffVersions, type VersionDiff } from '../../runtime/verification/diff.ts';
import { foldChanges } from '../../schema/fold-changes.ts';
import { readClients, readUsagePage } from '../../store/browsing/browse-usage.ts';
import { recordedDays } from '../../store/registry/field-usage.ts';
import { requireRight } from '../access/require-right.ts';
import type { QueryResolvers, TypeResolvers } from '../schema/resolver-types.ts';
import type {
  QueryClientsArgs,
  QueryDiffArgs,
  QueryFieldUsageArgs,
  QuerySchemaChangesArgs,
} from '../schema/sdl.generated.ts';
import { cursor, daysOf, isNumber, isText, pageSize, placeAt } from './cursors.ts';

/** The changes that a version would bring, those that follow from another one after it. */
function changesOf(version: string, { than, changes, days, recordedDays }: UsedChanges) {
  const folded = foldChanges(changes);
  return {
    ...{ version, than, days, recordedDays },
    changes: folded.flatMap(({ head, derived }) =>
      [head, ...derived].map((change) => ({ ...change, usedBy: change.askedBy, isDerived: change !== head })),
    ),
    breakingCount: folded.filter(({ head }) => head.criticality === 'breaking').length,
  };
}

/** The first rows that differ, without the values of columns that are personal or have an access rule in either version. */
function shownSamples({ samples }: VersionDiff, versions: readonly Projection[]) {
  if (versions.some(hidesKey)) return [];
  const shown = (row: Readonly<Record<string, unknown>> | null) =>
    row &&
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => {
        const isHidden = versions.some(({ hidden }) => hidden.has(name));
        return [name, isHidden && value !== null ? hiddenText : value];
      }),
    );
  return samples.map(({ key, older, newer }) => ({ key: jsonKey(key), older: shown(older), newer: shown(newer) }));
}

export const clientQueries = {
  fieldUsage: async (_, { path, client, days, first, after }: QueryFieldUsageArgs, { services }) => {
    const { db } = services.application;
    const page = { days: daysOf(days), after: placeAt(after, isText) ?? '', paths: pageSize(first, 100) };
    const wanted = { path: path ?? undefined, client: client ?? undefined };
    const { entries, last } = await readUsagePage(db, { ...page, ...wanted });
    return { items: entries, next: last === null ? null : cursor(last), recordedDays: await recordedDays(db) };
  },
  clients: async (_, { days, first, after }: QueryClientsArgs, { services }) => {
    const all = await readClients(services.application.db, daysOf(days));
    const start = placeAt(after, isNumber) ?? 0;
    const end = start + pageSize(first, 100);
    return { items: all.slice(start, end), next: end < all.length ? cursor(end) : null };
  },
  schemaChanges: async (_, { version: id, than }: QuerySchemaChangesArgs, { services }) => {
    const { name, version } = versionName(id);
    const other = than == null ? undefined : versionName(than);
    if (other && other.name !== name)
      throw new RefoldError('BAD_USER_INPUT', `'${than}' is a version of another projection than '${id}'.`);
    return changesOf(id, await services.application.schemaEvolution.changes(name, version, other?.version));
  },
  pendingChanges: async (_, _args, { services }) =>
    (await services.application.schemaEvolution.pendingChanges()).map((found) => changesOf(found.version, found)),
  diff: async (_, { older, newer }: QueryDiffArgs, { services, caller }) => {
    requireRight(caller, 'verify');
    const { find, config } = services.application;
    const versions = [declaredVersionOf(config, older), declaredVersionOf(config, newer)] as const;
    const [a, b] = versions;
    if (a.name !== b.name)
      throw new RefoldError('BAD_USER_INPUT', `'${older}' and '${newer}' are versions of different projections.`);
    const { db } = await storeOfBoth(find, a, b);
    const diff = await services.heavy(() => diffVersions(db, config.database.readSchema, a, b));
    const partial = versions.flatMap((version) => {
      const text = partialText(version);
      return text === null ? [] : [`${version.id} is partial: ${text}`];
    });
    return {
      ...diff,
      ...{ older, newer, partial },
      columns: Object.entries(diff.columns).map(([name, rows]) => ({ name, rows })),
      samples: caller.rights.has('data') ? shownSamples(diff, versions) : [],
    };
  },
} satisfies Partial<QueryResolvers>;

export const clientTypes = {
  Client: {
    fields: ({ fields }) => boundedCount(fields),
  },
  FieldUsage: {
    pins: ({ pins }) => pins.split(',').filter((pin) => pin !== ''),
  },
} satisfies Partial<TypeResolvers>;
