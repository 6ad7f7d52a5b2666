import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
import { balanceV1 } from '../../support/sample-domain.ts';
import { describeProcessing } from './processing.contract.ts';

// With read models in another database than the log.
const place = 'apart';

describeProcessing({ ownership: 'advisory', form: 'evolve', projection: balanceV1, place });
describeProcessing({ ownership: 'lease', form: 'evolve', projection: balanceV1, place });
describeProcessing({
  ...{ ownership: 'advisory', form: 'evolveSql', projection: totalsBySql, oneByOne: totalsByEvolve, place },
});
