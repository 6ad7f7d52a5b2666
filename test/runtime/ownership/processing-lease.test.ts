import { totalsByEvolve, totalsBySql } from '../../support/account-totals.ts';
import { inlineBalance } from '../../support/inline-domain.ts';
import { balanceV1 } from '../../support/sample-domain.ts';
import { describeProcessing } from './processing.contract.ts';

const ownership = 'lease';

describeProcessing({ ownership, form: 'evolve', projection: balanceV1 });
describeProcessing({ ownership, form: 'evolveSql', projection: totalsBySql, oneByOne: totalsByEvolve });
describeProcessing({ ownership, form: 'evolve in the append', projection: inlineBalance });
