/** `npm start`: the sample shop with random shoppers, on DATABASE_URL or an embedded PostgreSQL. */
import { withAdminToken } from '../../src/cli/serving/admin-token.ts';
import { announcement } from '../../src/cli/serving/announcement.ts';
import { serve } from '../../src/cli/serving/serve.ts';
import { exitWithError } from '../../src/cli/shared/exit-with-error.ts';
import { underEnvironment } from '../../src/config/environment.ts';
import app from './app.ts';
import { simulateTraffic } from './simulator.ts';
import { firstQuery, thingsToTry } from './things-to-try.ts';

const cartId = `cart-${Date.now().toString(36)}`;

try {
  const { config, adminPath } = withAdminToken(underEnvironment(app, process.env));
  await serve(
    { ...config, development: true },
    {
      defaultQuery: firstQuery,
      announce: (refold) =>
        `${announcement(refold, { graphiql: true, adminPath })}\n\n${thingsToTry(refold.url ?? '', cartId)}\n`,
      beside: ({ execute }, signal) => simulateTraffic({ execute, signal }),
    },
  );
} catch (error) {
  exitWithError(error);
}
