/** Refold with its read models in the database of the log, or in a read store apart from it. */
import { pino } from 'pino';
import { createRefold, defineConfig } from '../../src/index.ts';
import { distributedPartitions, isPlacement, storedApart } from '../many/stored-apart.ts';
import { answerParent } from './answer-parent.ts';

const [, , url = '', storeUrl, placement] = process.argv;
const refold = await createRefold(
  defineConfig({
    projections: storedApart(storeUrl !== undefined, placement === 'partition' ? distributedPartitions : 1),
    database: { url },
    ...(storeUrl === undefined
      ? {}
      : { readStores: { apart: { url: storeUrl, ...(isPlacement(placement) ? { placement } : {}) } } }),
    gateway: { port: 0 },
    development: false,
  }),
  { migrate: false, logger: pino({ level: 'error' }, pino.destination(2)) },
);
answerParent(refold.url ?? '', () => refold.stop());
