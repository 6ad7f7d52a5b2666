import app from '../../examples/online-retail/app.ts';
import { defineConfig } from '../../src/index.ts';

/** The sample as deployed before its invoices had a second version. */
export default defineConfig({
  projections: app.projections.filter(({ id }) => id !== 'invoice_summary@2'),
  imports: app.imports,
  gateway: { positionTimeout: 300_000, drainSeconds: 0 },
});
