/** `npm run reconcile`: compares the log with the read models, and ends with exit code 1 if they differ. */
import { exitWithError } from '../../src/cli/shared/exit-with-error.ts';
import { underEnvironment } from '../../src/config/environment.ts';
import { createRefold } from '../../src/index.ts';
import app from './app.ts';
import { reconcile } from './reconciliation.ts';

try {
  const { gateway, ...config } = underEnvironment(app, process.env);
  // It has time to wait for the read models, as after an import. No client needs its port.
  const bank = await createRefold({ ...config, gateway: { ...gateway, port: 0, positionTimeout: 300_000 } });
  const { events, accounts, balance, differences } = await reconcile(bank);
  await bank.stop();
  for (const difference of differences) console.log(difference);
  console.log(`${events} events of ${accounts} accounts add up to ${balance}: ${differences.length} differences.`);
  process.exitCode = differences.length === 0 ? 0 : 1;
} catch (error) {
  exitWithError(error);
}
