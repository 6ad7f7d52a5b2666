import { actionsContract } from './actions-contract.ts';

actionsContract();
