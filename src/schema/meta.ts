import { RefoldError } from '../errors.ts';
import type { ServedVersion, VersionProgress } from '../projections/version-map.ts';
import type { Builder } from './builder.ts';

/** `_meta`: which versions answer, and how far they are. */
export function addMeta(builder: Builder, served: readonly ServedVersion[]): void {
  const state = builder.enumType('VersionState', { values: ['building', 'ready', 'active', 'retired', 'failed'] });
  const status = builder.objectRef<VersionProgress>('ProjectionStatus').implement({
    description: 'The version of a projection that answers.',
    fields: (t) => ({
      name: t.string({ resolve: ({ projection }) => projection }),
      version: t.int({ resolve: ({ version }) => version }),
      state: t.field({ type: state, resolve: (progress) => progress.state }),
      position: t.field({
        type: 'Position',
        description: 'How much of the event log is in it.',
        resolve: ({ position }) => position,
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
      progress: t.float({ description: '0 to 1.', resolve: ({ progress }) => progress }),
    }),
  });
  const meta = builder.objectRef<object>('Meta').implement({
    fields: (t) => ({
      projections: t.field({
        type: [status],
        description: 'Those that the viewer may read.',
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

/** A projection that the viewer may not read is left out: its name and pace are not theirs to know. */
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
