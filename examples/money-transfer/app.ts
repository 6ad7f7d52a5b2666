import { defineConfig } from '../../src/index.ts';
import { closeAccount, depositMoney, openAccount } from './account.ts';
import { accountBalanceV1, moneyTransferV1 } from './read-models.ts';
import { moneyTransfers, requestTransfer } from './transfer.ts';

/** The steps of a transfer are not mutations: only the reactor runs them. */
export default defineConfig({
  projections: [accountBalanceV1, moneyTransferV1],
  commands: [openAccount, depositMoney, closeAccount, requestTransfer],
  reactors: [moneyTransfers],
});
