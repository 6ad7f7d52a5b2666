import { defineConfig } from '../../src/index.ts';
import { deposit, openAccount, transfer, withdraw } from './account.ts';
import { accountV1 } from './account.v1.ts';
import { accountBalanceV1 } from './account-balance.v1.ts';
import { addInterest, chargeFee, correctBooking } from './bank-bookings.ts';
import { berkaImport } from './berka-import.ts';
import { bookingV1 } from './booking.v1.ts';
import { operationTotalsV1 } from './operation-totals.v1.ts';
import { statementV1 } from './statement.v1.ts';
import { turnoverByDayV1 } from './turnover-by-day.v1.ts';

export default defineConfig({
  projections: [accountV1, bookingV1, statementV1, accountBalanceV1, operationTotalsV1, turnoverByDayV1],
  commands: [openAccount, deposit, withdraw, transfer, addInterest, chargeFee, correctBooking],
  imports: [berkaImport],
});
