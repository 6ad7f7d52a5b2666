import { defineConfig } from '../../../src/index.ts';
import { amountDueV1 } from '../amount-due.v1.ts';
import app from '../app.ts';
import { cartSummaryV2 } from '../cart-summary.v2.ts';
import { customerProfileV1 } from '../customer-profile.v1.ts';

/** The third release: without version 1, with an inline read model. */
export default defineConfig({
  projections: [cartSummaryV2, customerProfileV1, amountDueV1],
  commands: app.commands,
  gateway: { graphiql: true, positionTimeout: 60_000 }, // some workers of the tutorial are slow
});
