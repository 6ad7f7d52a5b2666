import { defineConfig } from '../../src/index.ts';
import { accountBalanceV1 } from './account-balance.v1.ts';
import { berkaImport } from './berka-import.ts';
import { operationTotalsV1 } from './operation-totals.v1.ts';
import { turnoverByDayV1 } from './turnover-by-day.v1.ts';

export default defineConfig({
  projections: [operationTotalsV1, turnoverByDayV1, accountBalanceV1],
  imports: [berkaImport],
});
