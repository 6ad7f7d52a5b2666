/** `npm start`: the sample shop with random shoppers, on DATABASE_URL or an embedded PostgreSQL. */
import { announcement } from '../../src/cli/serving/announcement.ts';
import { serve } from '../../src/cli/serving/serve.ts';
import { exitWithError } from '../../src/cli/shared/exit-with-error.ts';
import { underEnvironment } from '../../src/config/environment.ts';
import app from './app.ts';
import { simulateTraffic } from './simulator.ts';
import { firstQuery, thingsToTry } from './things-to-try.ts';

const cartId = `cart-${Date.now().toString(36)}`;

try {
  await serve(
    { ...underEnvironment(app, process.env), development: true },
    {
      defaultQuery: firstQuery,
      announce: (refold) => `${announcement(refold, true)}\n\n${thingsToTry(refold.url ?? '', cartId)}\n`,
      beside: ({ execute }, signal) => simulateTraffic({ execute, signal }),
    },
  );
} catch (error) {
  exitWithError(error);
}
