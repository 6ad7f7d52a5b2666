import { RefoldError } from '../../errors.ts';
import { hiddenText, hidesKey } from '../../projections/declaration/hidden-values.ts';
import { type Projection, partialText } from '../../projections/projection/projection.ts';
import { declaredVersionOf, versionName } from '../../runtime/inspection/application.ts';
import { storeOfBoth } from '../../runtime/stores/steps-of-stores.ts';
import { diffVersions, type VersionDiff as VersionDifference } from '../../runtime/verification/diff.ts';
import { readClients, readUsagePage } from '../../store/browsing/browse-usage.ts';
import { recordedDays } from '../../store/registry/field-usage.ts';
import { requireRight } from '../access/require-right.ts';
import { builder } from '../types/builder.ts';
import { ClientPage, FieldUsagePage, SchemaChanges } from '../types/client-types.ts';
import { VersionDiff } from '../types/comparison-types.ts';
import { cursor, daysOf, isNumber, isText, pageSize, placeAt, usualDays } from '../types/cursors.ts';

/** Without the values of columns that are personal or have an access rule in either version. */
function shownSamples({ samples }: VersionDifference, versions: readonly Projection[]): VersionDifference['samples'] {
  const shown = (row: Readonly<Record<string, unknown>> | null) =>
    row &&
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => {
        const isHidden = versions.some(({ hidden }) => hidden.has(name));
        return [name, isHidden && value !== null ? hiddenText : value];
      }),
    );
  return samples.map(({ key, older, newer }) => ({ key, older: shown(older), newer: shown(newer) }));
}

builder.queryFields((t) => ({
  fieldUsage: t.field({
    type: FieldUsagePage,
    description: 'Which clients used which fields, as the gateways recorded it.',
    args: {
      path: t.arg.string(),
      client: t.arg.string(),
      days: t.arg.int({ defaultValue: usualDays }),
      first: t.arg.int({ defaultValue: 100 }),
      after: t.arg.string(),
    },
    resolve: async (_, { path, client, days, first, after }, { services }) => {
      const { db } = services.application;
      const page = { days: daysOf(days), after: placeAt(after, isText) ?? '', paths: pageSize(first, 100) };
      const wanted = { path: path ?? undefined, client: client ?? undefined };
      const { entries, last } = await readUsagePage(db, { ...page, ...wanted });
      return { items: entries, next: last === null ? null : cursor(last), recordedDays: await recordedDays(db) };
    },
  }),
  clients: t.field({
    type: ClientPage,
    description: 'Clients, with what they used in total.',
    args: {
      days: t.arg.int({ defaultValue: usualDays }),
      first: t.arg.int({ defaultValue: 100 }),
      after: t.arg.string(),
    },
    resolve: async (_, { days, first, after }, { services }) => {
      const all = await readClients(services.application.db, daysOf(days));
      const start = placeAt(after, isNumber) ?? 0;
      const end = start + pageSize(first, 100);
      return { items: all.slice(start, end), next: end < all.length ? cursor(end) : null };
    },
  }),
  schemaChanges: t.field({
    type: SchemaChanges,
    description:
      'What changes for clients if a version answers in place of another. `than`: by default the version that answers now.',
    args: { version: t.arg.id({ required: true }), than: t.arg.id() },
    resolve: async (_, { version: id, than }, { services }) => {
      const { name, version } = versionName(id);
      const other = than == null ? undefined : versionName(than);
      if (other && other.name !== name)
        throw new RefoldError('BAD_USER_INPUT', `'${than}' is a version of another projection than '${id}'.`);
      return { version: id, found: await services.application.schemaEvolution.changes(name, version, other?.version) };
    },
  }),
  pendingChanges: t.field({
    type: [SchemaChanges],
    description: 'Versions that wait to answer, and what each would change for clients.',
    resolve: async (_, _args, { services }) =>
      (await services.application.schemaEvolution.pendingChanges()).map((found) => ({ version: found.version, found })),
  }),
  diff: t.field({
    type: VersionDiff,
    description:
      'Compares the rows of two versions at the same position. Heavy: one at a time in a process. Needs the right `verify`.',
    args: { older: t.arg.id({ required: true }), newer: t.arg.id({ required: true }) },
    resolve: async (_, { older, newer }, { services, caller }) => {
      requireRight(caller, 'verify');
      const { find, config } = services.application;
      const [a, b] = [declaredVersionOf(config, older), declaredVersionOf(config, newer)];
      if (a.name !== b.name)
        throw new RefoldError('BAD_USER_INPUT', `'${older}' and '${newer}' are versions of different projections.`);
      const { db } = await storeOfBoth(find, a, b);
      const diff = await services.heavy(() => diffVersions(db, config.database.readSchema, a, b));
      const partial = [a, b].flatMap((version) => {
        const text = partialText(version);
        return text === null ? [] : [`${version.id} is partial: ${text}`];
      });
      return {
        older,
        newer,
        partial,
        diff: { ...diff, samples: hidesKey(a) || hidesKey(b) ? [] : shownSamples(diff, [a, b]) },
      };
    },
  }),
}));
