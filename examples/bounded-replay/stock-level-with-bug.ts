import { defineProjection, t } from '../../src/index.ts';
import { warehouse } from './events.ts';

// The bug that was deployed one day: after a refactoring, each shipment counted as one piece, whatever its quantity.
export const stockLevelWithBug = defineProjection({
  name: 'stock_level',
  version: 1,
  events: warehouse,
  table: { sku: t.text().primaryKey(), onHand: t.integer(), shipped: t.integer() },
  key: (event) => event.payload.sku,
  evolve: {
    StockReceived: (row, { payload: { quantity } }) => ({
      onHand: (row?.onHand ?? 0) + quantity,
      shipped: row?.shipped ?? 0,
    }),
    StockShipped: (row) => ({
      onHand: (row?.onHand ?? 0) - 1,
      shipped: (row?.shipped ?? 0) + 1,
    }),
  },
  snapshots: { everyEvents: 100, keep: 2 },
});
