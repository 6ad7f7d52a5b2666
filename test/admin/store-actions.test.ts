import { createTestDatabase } from '../support/test-database.ts';
import { actionsContract } from './actions-contract.ts';

actionsContract(() => createTestDatabase());
