import { defineConfig } from '../../../src/index.ts';
import app from '../app.ts';
import { cartSummaryV1 } from '../cart-summary.v1.ts';
import { customerProfileV1 } from '../customer-profile.v1.ts';

/** The first release of the shop in docs/tutorial.md. */
export default defineConfig({
  projections: [cartSummaryV1, customerProfileV1],
  commands: app.commands,
  gateway: { graphiql: true, positionTimeout: 60_000 }, // some workers of the tutorial are slow
});
