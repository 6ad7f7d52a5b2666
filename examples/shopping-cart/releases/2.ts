import { defineConfig } from '../../../src/index.ts';
import app from '../app.ts';
import { cartSummaryV1 } from '../cart-summary.v1.ts';
import { cartSummaryV2 } from '../cart-summary.v2.ts';
import { customerProfileV1 } from '../customer-profile.v1.ts';

/** The second release: version 2 beside version 1. */
export default defineConfig({
  projections: [cartSummaryV1, cartSummaryV2, customerProfileV1],
  commands: app.commands,
  gateway: { graphiql: true, positionTimeout: 60_000 }, // some workers of the tutorial are slow
});
