/** Refold with everything that production has on: limits, metrics, masks. */
import { createRefold, defineConfig } from '../../src/index.ts';
import { cartSummary } from '../carts.ts';
import { answerParent } from './answer-parent.ts';

const [, , url = ''] = process.argv;
const refold = await createRefold(
  defineConfig({
    projections: [cartSummary],
    database: { url },
    gateway: { port: 0, maxSubscriptions: 100_000 },
    development: false,
  }),
);
answerParent(refold.url ?? '', () => refold.stop());
