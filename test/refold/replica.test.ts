import { replicaContract } from './replica.ts';

replicaContract('log');
