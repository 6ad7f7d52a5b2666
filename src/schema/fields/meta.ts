import { RefoldError } from '../../errors.ts';
import type { ServedVersion, VersionProgress } from '../../projections/projection/version-map.ts';
import type { Builder } from '../builder/builder.ts';

/** Adds `_meta`: which versions are served, and their progress. */
export function addMeta(builder: Builder, served: readonly ServedVersion[]): void {
  const state = builder.enumType('VersionState', {
    description: 'The state of a version.',
    values: {
      BUILDING: { value: 'building', description: 'It is being built from the event log.' },
      READY: { value: 'ready', description: 'It has caught up with the event log, and waits for its activation.' },
      ACTIVE: { value: 'active', description: 'It can serve queries.' },
      RETIRED: { value: 'retired', description: 'It is no longer maintained.' },
      FAILED: { value: 'failed', description: 'It has stopped because of an error, and serves no queries.' },
    } as const,
  });
  const status = builder.objectRef<VersionProgress>('ProjectionStatus').implement({
    description: 'The version of a projection that serves queries.',
    fields: (t) => ({
      name: t.string({ description: 'The name of the projection.', resolve: ({ projection }) => projection }),
      version: t.int({ description: 'The number of the version.', resolve: ({ version }) => version }),
      state: t.field({
        type: state,
        description: 'The state of the version.',
        resolve: (progress) => progress.state,
      }),
      position: t.field({
        type: 'Position',
        description: 'The position of the event log that its rows include.',
        resolve: ({ position }) => position,
      }),
      startsAfter: t.field({
        type: 'Position',
        nullable: true,
        description:
          'If the read model is partial: it includes only events after this position. Null if it is complete.',
        resolve: ({ projection: name, version }) => {
          const found = served.find(({ projection: one }) => one.name === name && one.version === version);
          return found && found.projection.startAfter > 0n ? found.projection.startAfter : null;
        },
      }),
      head: t.field({
        type: 'Position',
        description: 'The last position of the event log.',
        resolve: ({ head }) => head,
      }),
      lag: t.field({
        type: 'BigInt',
        description: 'The number of positions that it is behind the end of the log.',
        resolve: ({ head, position }) => (head > position ? head - position : 0n),
      }),
      progress: t.float({
        description: 'The share of the log that its rows include, from 0 to 1.',
        resolve: ({ progress }) => progress,
      }),
      paused: t.boolean({
        description: 'Whether an operator has paused the version. Its position does not change meanwhile.',
        resolve: ({ paused }) => paused,
      }),
      heldRows: t.int({
        description:
          'The number of rows that wait for a dead letter, up to 10,000. They lack events at or below `position`.',
        resolve: ({ heldRows }) => heldRows,
      }),
    }),
  });
  const meta = builder.objectRef<object>('Meta').implement({
    description: 'Information about the API.',
    fields: (t) => ({
      projections: t.field({
        type: [status],
        description: 'The projections that the viewer may read, with their progress.',
        args: { name: t.arg.string({ required: false, description: 'Only this projection, such as `cart_summary`.' }) },
        resolve: (_, { name }, { readModels }) =>
          readable(
            served
              .filter(({ projection }) => name === null || name === undefined || projection.name === name)
              .map(({ projection }) => readModels.progress(projection)),
          ),
      }),
    }),
  });
  builder.queryField('_meta', (t) =>
    t.field({ type: meta, description: 'The versions that serve queries, with their progress.', resolve: () => ({}) }),
  );
}

/** Leaves out projections that the viewer may not read, including their names and progress. */
async function readable(all: readonly Promise<VersionProgress>[]): Promise<VersionProgress[]> {
  const found = await Promise.all(
    all.map((one) =>
      one.catch((error: unknown) => {
        if (error instanceof RefoldError && ['UNAUTHENTICATED', 'FORBIDDEN'].includes(error.code)) return null;
        throw error;
      }),
    ),
  );
  return found.filter((progress) => progress !== null);
}
