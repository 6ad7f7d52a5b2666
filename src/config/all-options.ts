import { databaseRules } from './database-options.ts';
import { gatewayRules } from './gateway-options.ts';
import { checkKinds, type NamedOption, type OptionTable, optionsOf } from './option-rules.ts';
import { runtimeRules } from './runtime-options.ts';

const table: OptionTable = {
  database: { kind: 'group', of: databaseRules },
  readStores: { kind: 'json' },
  store: { kind: 'text' },
  runtime: { kind: 'group', of: runtimeRules },
  gateway: { kind: 'group', of: gatewayRules },
  development: { kind: 'boolean' },
};

/** Every option of a configuration that is not a declaration. */
export const allOptions: readonly NamedOption[] = optionsOf(table);

/** Refuses values of another kind than the options take. @throws RefoldError `INVALID_CONFIG` */
export function checkOptionKinds(given: object): void {
  checkKinds(table, given);
}
