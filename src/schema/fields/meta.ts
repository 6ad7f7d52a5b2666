import { RefoldError } from '../../errors.ts';
import type { ServedVersion, VersionProgress } from '../../projections/projection/version-map.ts';
import type { Builder } from '../builder/builder.ts';

/** Adds `_meta`: which versions are served, and their progress. */
export function addMeta(builder: Builder, served: readonly ServedVersion[]): void {
  const state = builder.enumType('VersionState', {
    description: 'Where a version is in its life.',
    values: {
      BUILDING: { value: 'building', description: 'Its history is being folded.' },
      READY: { value: 'ready', description: 'It has the whole history, and waits for its activation.' },
      ACTIVE: { value: 'active', description: 'It may answer.' },
      RETIRED: { value: 'retired', description: 'It is no longer maintained.' },
      FAILED: { value: 'failed', description: 'It can not go on, and does not answer.' },
    } as const,
  });
  const status = builder.objectRef<VersionProgress>('ProjectionStatus').implement({
    description: 'The version of a projection that answers.',
    fields: (t) => ({
      name: t.string({ description: "The projection's name.", resolve: ({ projection }) => projection }),
      version: t.int({ description: 'The number of the version that answers.', resolve: ({ version }) => version }),
      state: t.field({
        type: state,
        description: 'Where the version is in its life.',
        resolve: (progress) => progress.state,
      }),
      position: t.field({
        type: 'Position',
        description: 'How much of the event log is in it.',
        resolve: ({ position }) => position,
      }),
      startsAfter: t.field({
        type: 'Position',
        nullable: true,
        description: 'If the read model is partial: it holds only events after this position. Null if it is whole.',
        resolve: ({ projection: name, version }) => {
          const found = served.find(({ projection: one }) => one.name === name && one.version === version);
          return found && found.projection.startAfter > 0n ? found.projection.startAfter : null;
        },
      }),
      head: t.field({
        type: 'Position',
        description: 'The end of the event log.',
        resolve: ({ head }) => head,
      }),
      lag: t.field({
        type: 'BigInt',
        description: 'How many positions it is behind the end of the log.',
        resolve: ({ head, position }) => (head > position ? head - position : 0n),
      }),
      progress: t.float({
        description: 'How much of the log it has taken in, from 0 to 1.',
        resolve: ({ progress }) => progress,
      }),
      paused: t.boolean({
        description: 'Whether an operator has paused the version: its position stays where it is.',
        resolve: ({ paused }) => paused,
      }),
      heldRows: t.int({
        description:
          'How many rows wait for a dead letter, up to 10,000: they do not include events that `position` says are in it.',
        resolve: ({ heldRows }) => heldRows,
      }),
    }),
  });
  const meta = builder.objectRef<object>('Meta').implement({
    description: 'What the API says of itself.',
    fields: (t) => ({
      projections: t.field({
        type: [status],
        description: 'The projections that the viewer may read, and how far they are.',
        args: { name: t.arg.string({ required: false, description: 'This projection only, such as `cart_summary`.' }) },
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
    t.field({ type: meta, description: 'Which versions answer, and how far they are.', resolve: () => ({}) }),
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
