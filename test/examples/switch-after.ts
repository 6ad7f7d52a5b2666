import app from '../../examples/online-retail/app.ts';
import { defineConfig, type Projection } from '../../src/index.ts';

/** The suffix of the second version's countries. */
export const mark = ' (v2)';

/** The sample with both versions. The second one marks every row: a response that mixes both would show. */
export default defineConfig({
  projections: app.projections.map((projection) =>
    projection.id === 'invoice_summary@2' ? markedRows(projection) : projection,
  ),
  imports: app.imports,
  gateway: { positionTimeout: 300_000, drainSeconds: 0 },
});

function markedRows(projection: Projection): Projection {
  return Object.freeze({
    ...projection,
    apply(...given: Parameters<Projection['apply']>) {
      const row = projection.apply(...given);
      return row && { ...row, country: `${row.country}${mark}` };
    },
  });
}
