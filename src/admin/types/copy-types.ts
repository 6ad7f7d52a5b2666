import type { CopyStatus } from '../../runtime/monitoring/status.ts';
import { builder } from './builder.ts';
import { ProcessorError, VersionState } from './shared-types.ts';

export const Copy = builder.objectRef<CopyStatus>('Copy');
Copy.implement({
  description: 'A copy of a version in another read store. It is maintained, too.',
  fields: (t) => ({
    store: t.expose('store', { type: 'String' }),
    state: t.expose('state', { type: VersionState }),
    position: t.expose('position', { type: 'BigInt' }),
    isArriving: t.field({
      type: 'Boolean',
      description: 'Whether the version moves there. False: a move has left the copy.',
      resolve: ({ arriving }) => arriving,
    }),
    heldReason: t.expose('heldReason', { type: 'String', nullable: true, description: 'Why it does not take over.' }),
    error: t.expose('error', { type: ProcessorError, nullable: true }),
  }),
});
