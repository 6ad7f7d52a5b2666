/** Refold with everything that is on in production: limits, metrics, masked errors. */
import { pino } from 'pino';
import { createRefold, defineConfig } from '../../src/index.ts';
import { cartOfCustomer, cartSummary, customerTotal } from '../carts.ts';
import { answerParent } from './answer-parent.ts';

const [, , url = '', related] = process.argv;
const refold = await createRefold(
  defineConfig({
    projections: related === 'related' ? [cartOfCustomer, customerTotal] : [cartSummary],
    database: { url },
    gateway: {
      port: 0,
      maxSubscriptions: 100_000,
      maxSubscriptionsPerClient: 100_000,
      maxSockets: 100_000,
      maxSocketsPerClient: 100_000,
    },
    development: false,
  }),
  // A processor warns when a rebuild has replaced its table; a benchmark does not need the line.
  { migrate: false, logger: pino({ level: 'error' }, pino.destination(2)) },
);
answerParent(refold.url ?? '', () => refold.stop());
